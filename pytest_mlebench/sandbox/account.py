"""Who an agent is in an image: the user that the image names, under a number that may be ours."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

HOME = "/home"
AGENT_DIR = "/home/agent"
START = f"{AGENT_DIR}/start.sh"

_REFERENCE_USER = "nonroot"  # of the reference's mlebench-env


@dataclass(frozen=True)
class Account:
    """Who the agent is inside."""

    uid: int
    gid: int
    name: str
    home: str

    @property
    def line(self) -> str:
        """Return the account as a line of /etc/passwd."""
        return f"{self.name}:x:{self.uid}:{self.gid}::{self.home}:/bin/sh\n"


def choose_account(passwd: str, configured: str, user: tuple[int, int] | None) -> Account:
    """Return the agent's account: ours, else the image's own user, else a new one; never root."""
    accounts = {account.name: account for account in accounts_in(passwd)}
    by_uid = {account.uid: account for account in accounts.values()}
    candidates = (_configured(configured, accounts, by_uid), accounts.get(_REFERENCE_USER))
    own = next((known for known in candidates if known is not None and known.uid != 0), None)
    if user is None and own is not None:
        return own
    uid, gid = user or (1000, 1000)
    if uid in by_uid and uid != 0:
        return replace(by_uid[uid], gid=gid)
    if own is not None:  # its user may have a home full of caches: name and home become ours
        return Account(uid, gid, own.name if uid else "root", own.home)
    name = next(n for n in ("agent", "mlebench", f"agent{uid}") if n not in accounts)
    return Account(uid, gid, name if uid else "root", AGENT_DIR)


def accounts_in(passwd: str) -> Iterable[Account]:
    """Yield the accounts of an image's /etc/passwd; a home outside of /home is not theirs."""
    for line in passwd.splitlines():
        fields = line.split(":")
        if len(fields) >= 6 and fields[2].isdecimal() and fields[3].isdecimal():
            home = fields[5] if fields[5].startswith(f"{HOME}/") else AGENT_DIR
            yield Account(int(fields[2]), int(fields[3]), fields[0], home)


def passwd_with(passwd: str, account: Account) -> str:
    """Return /etc/passwd with an account, instead of another of the same name."""
    lines = passwd.splitlines() or ["root:x:0:0:root:/root:/bin/sh"]
    others = [line for line in lines if line.partition(":")[0] != account.name]
    return "".join(f"{line}\n" for line in others) + account.line


def _configured(
    text: str, accounts: dict[str, Account], by_uid: dict[int, Account]
) -> Account | None:
    """Return the account that an image's USER names, by name or number."""
    user, _, group = text.partition(":")
    if user in accounts:
        return accounts[user]
    if not user.isdecimal():
        return None
    gid = int(group) if group.isdecimal() else 0
    return by_uid.get(int(user)) or Account(int(user), gid, f"agent{user}", AGENT_DIR)
