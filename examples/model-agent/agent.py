"""An agent of one page: a model writes a program, we run it and show the model what happened."""

import os
import re
import subprocess
import sys
from pathlib import Path

from openai import APIStatusError, OpenAI

DATA = Path(os.environ["DATA_DIR"])
CODE = Path(os.environ["CODE_DIR"])
SUBMISSION = Path(os.environ["SUBMISSION_DIR"], "submission.csv")
VALIDATE = Path(os.environ["SUBMISSION_DIR"]).parent / "validate_submission.sh"
STEPS = int(os.environ["STEPS"])
TASK = """Solve this machine-learning competition with a Python program.
The data are in {data}; write the submission to {submission}. Answer with one block of code:
```python
...
```
The files are:
{files}

The competition:
{description}"""


def main() -> None:
    """Improve the program step by step, as long as the budget lasts."""
    client = OpenAI()  # its address and key are in the environment
    messages = [{"role": "user", "content": task()}]
    for step in range(STEPS):
        try:
            answer = client.chat.completions.create(model=os.environ["MODEL"], messages=messages)
        except APIStatusError as problem:
            print(f"step {step}: no answer: {problem}")  # what has been handed in stays
            return
        text = answer.choices[0].message.content or ""
        outcome = run(step, program(text))
        print(f"step {step}: {outcome}")
        messages += [{"role": "assistant", "content": text}, {"role": "user", "content": outcome}]
        if "Submission is valid." in outcome:
            return


def task() -> str:
    """Return what the model is asked."""
    files = [f"{path.relative_to(DATA)}: {path.stat().st_size} bytes" for path in DATA.iterdir()]
    description = DATA / "description.md"
    text = description.read_text() if description.exists() else ""
    return TASK.format(
        data=DATA, submission=SUBMISSION, files="\n".join(files[:50]), description=text
    )


def program(text: str) -> str:
    """Return the program in an answer."""
    block = re.search(r"```(?:python)?\n(.*?)```", text, flags=re.DOTALL)
    return block[1] if block else text


def run(step: int, code: str) -> str:
    """Run a program and return what the model should know of it."""
    file = CODE / f"step{step}.py"
    file.write_text(code)
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, timeout=3600, check=False
    )
    if done.returncode:
        return f"The program failed:\n{done.stderr[-2000:]}"
    check = subprocess.run(
        [VALIDATE, SUBMISSION], capture_output=True, text=True, timeout=600, check=False
    )
    return f"The program ran. {check.stdout or check.stderr}\n{done.stdout[-1000:]}"


if __name__ == "__main__":
    main()
