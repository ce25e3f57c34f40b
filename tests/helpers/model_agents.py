"""Agents that call models, as programs: they use real clients, or look for the real key."""

from __future__ import annotations

# Uses both clients as their environment tells, whole and streamed, and leaves what it heard.
CALLER = """
import json, os
from concurrent.futures import ThreadPoolExecutor
import anthropic, openai
hello = [{"role": "user", "content": "hello"}]
client, claude = openai.OpenAI(), anthropic.Anthropic()
heard = {"chat": client.chat.completions.create(model="gpt-5", messages=hello)
         .choices[0].message.content}
chunks = client.chat.completions.create(model="gpt-5", messages=hello, stream=True)
heard["stream"] = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
heard["responses"] = client.responses.create(model="gpt-5", input="hello").output_text
heard["message"] = claude.messages.create(
    model="claude", max_tokens=9, messages=hello).content[0].text
with claude.messages.stream(model="claude", max_tokens=9, messages=hello) as stream:
    heard["message stream"] = "".join(stream.text_stream)
def ask(number):
    return client.chat.completions.create(model="gpt-5", messages=hello).usage.total_tokens
with ThreadPoolExecutor(20) as pool:
    heard["tokens"] = sum(pool.map(ask, range(20)))
with open(os.environ["LOGS_DIR"] + "/heard.json", "w") as file:
    json.dump(heard, file)
"""

HEARD = {
    **dict.fromkeys(
        ("chat", "stream", "responses", "message", "message stream"), "Hello from the model."
    ),
    "tokens": 20 * 120,
}

# Calls until it is refused, and goes on: an exhausted budget is not the end of an attempt.
SPENDER = """
import os, openai
made = 0
client = openai.OpenAI()
try:
    while made < 1000:
        client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "x"}])
        made += 1
except openai.RateLimitError as refusal:
    print("refused:", refusal)
with open(os.environ["SUBMISSION_DIR"] + "/submission.csv", "w") as file:
    file.write(f"id,label,target\\n1,{made},{made}\\n")
"""

# Looks for a word wherever an agent might look; the word comes in two halves, so that the
# program itself does not hold it. Further places come as in:PATH, which no sandbox takes for a
# path that the command names and the agent is to see.
SEEKER = """
import os, sys
first, second = sys.argv[1:3]
word = (first + second).encode()
found, read = [], 0
def look(path):
    global read
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        try:
            data = file.read(1 << 20) or b""
        except OSError:
            return
    read += 1
    if word in data:
        found.append(path)
for name, value in os.environb.items():
    if word in name + value:
        found.append("env " + name.decode())
for top in ("/proc", os.environ["HOME"], "/home", "/tmp", "/run", "/.mlebench", "/etc", "/dev/shm",
            os.environ["AGENT_DIR"], os.environ["DATA_DIR"],
            *(word.removeprefix("in:") for word in sys.argv[3:])):
    for folder, folders, files in os.walk(top):
        folders[:] = [name for name in folders if name not in ("site-packages", "lib", "task")]
        for name in files:
            if not name.startswith(("kmsg", "kpage", "kcore")):
                look(os.path.join(folder, name))
for process in os.listdir("/proc"):
    if process.isdigit() and int(process) != os.getpid():
        try:  # what is in the memory of others
            maps = open(f"/proc/{process}/maps").read().splitlines()
            memory = open(f"/proc/{process}/mem", "rb", 0)
        except OSError:
            continue
        for line in maps:
            start, end = (int(number, 16) for number in line.split()[0].split("-"))
            if line.split()[1].startswith("rw") and end - start < 1 << 26:
                try:
                    memory.seek(start)
                    if word in memory.read(end - start):
                        found.append(f"memory of {process}")
                except (OSError, ValueError, OverflowError):
                    continue
print("read", read, "files")
print("found", found)
"""

# Makes CALLS calls of MODEL with nothing but the standard library, notes how each ended, and
# hands in the sample submission.
COUNTING = """
import json, os, shutil, urllib.error, urllib.request
statuses = []
for _ in range(int(os.environ["CALLS"])):
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps({"model": os.environ["MODEL"], "max_tokens": 20, "messages": []}).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"],
         "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request) as answer:
            answer.read()
            statuses.append(answer.status)
    except urllib.error.HTTPError as refusal:
        statuses.append(refusal.code)
print("statuses", statuses)
if "USAGE" in os.environ:
    with open(os.environ["LOGS_DIR"] + "/usage.json", "w") as file:
        file.write(os.environ["USAGE"])
shutil.copy(os.environ["DATA_DIR"] + "/sample_submission.csv",
            os.environ["SUBMISSION_DIR"] + "/submission.csv")
"""

# Looks for a word in the memory of its own process, without ever putting its two halves together.
OWN_MEMORY = """
import sys
first, second = (word.encode() for word in sys.argv[1:3])
looked, places = 0, []
memory = open("/proc/self/mem", "rb", 0)
for line in open("/proc/self/maps").read().splitlines():
    start, end = (int(number, 16) for number in line.split()[0].split("-"))
    if not line.split()[1].startswith("r"):
        continue
    try:
        memory.seek(start)
        data = memory.read(end - start)
    except (OSError, ValueError, OverflowError):
        continue
    looked += len(data)
    place = data.find(first)
    while place >= 0:
        if data.startswith(second, place + len(first)):
            places.append(line)
        place = data.find(first, place + 1)
print("looked at", looked >> 20, "MB")
print("own memory", places)
"""

# A tree search as AIDE does it: plans with code in a fence, the code run as a program, a review by
# a function call, debugging of what failed and improvement of what worked; and a backoff of its
# own around calls, because its client does not repeat any.
TREE_SEARCH = """
import json, os, pathlib, re, subprocess, sys, time
import openai
options = dict(word.split("=", 1) for word in sys.argv[1:])
client = openai.OpenAI(max_retries=0)
REVIEW = {"type": "function", "function": {
    "name": "submit_review", "description": "Submit a review of the output of a script.",
    "parameters": {"type": "object", "required": ["is_bug", "summary", "metric"], "properties": {
        "is_bug": {"type": "boolean"}, "summary": {"type": "string"},
        "metric": {"type": ["number", "null"]}}}}}
PASSING = (openai.RateLimitError, openai.InternalServerError, openai.APIConnectionError,
           openai.APITimeoutError)

def ask(**call):
    for tries in range(8):
        try:
            return client.chat.completions.create(model=options["agent.code.model"], **call)
        except PASSING as problem:
            if getattr(problem, "code", None) == "insufficient_quota":
                raise
            print("waits after", type(problem).__name__, flush=True)
            time.sleep(0.01 * 1.5 ** tries)
    raise SystemExit("the model does not answer")

def draft(node):
    task = open(os.environ["DATA_DIR"] + "/description.md").read()
    parts = [{"role": "system", "content": "You are a Kaggle grandmaster. " + task}]
    if node is not None:
        word = "Debug" if node["bug"] else "Improve"
        parts.append({"role": "user", "content": word + " this:\\n" + node["code"]
                      + "\\nIt printed:\\n" + node["output"]})
    answer = ask(messages=parts, temperature=0.5).choices[0].message.content
    return re.search("```python\\n(.*?)```", answer, re.DOTALL)[1]

def run(code):
    path = pathlib.Path(os.environ["CODE_DIR"], "runfile.py")
    path.write_text(code)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr

def review(code, output):
    said = ask(messages=[{"role": "system", "content": "Review " + code + " printed " + output}],
               tools=[REVIEW], tool_choice={"type": "function",
                                            "function": {"name": "submit_review"}})
    return json.loads(said.choices[0].message.tool_calls[0].function.arguments)

journal, best = [], None
for step in range(int(options["agent.steps"])):
    parent = journal[-1] if journal and journal[-1]["bug"] else best
    code = draft(parent)
    output = run(code)
    found = review(code, output)
    node = {"step": step, "code": code, "output": output, "bug": found["is_bug"],
            "metric": found["metric"]}
    journal.append(node)
    if not node["bug"] and (best is None or node["metric"] > best["metric"]):
        best = node
pathlib.Path(os.environ["LOGS_DIR"], "journal.json").write_text(json.dumps(journal))
print("best", best["step"], best["metric"])
"""
