#!/usr/bin/env python3
"""Works while its Pod leads, and until the deadline at the latest. Reads ELECTOR_GET_URL and ELECTOR_HTTP_TOKEN_FILE."""

import contextlib, json, os, threading, time, urllib.request

url = os.environ["ELECTOR_GET_URL"]
token = open(os.environ["ELECTOR_HTTP_TOKEN_FILE"]).read().strip()
until = 0.0  # By the clock that counts from the start.


def ask():
    """What is left counts from before the question: a program that is paused over it has less, and never more."""
    global until
    while True:
        sent = time.monotonic()
        with contextlib.suppress(OSError, ValueError):  # Until the deadline it may go on.
            with urllib.request.urlopen(url + "leader", timeout=1) as answer:
                until = sent + json.load(answer)["remaining_ms"] / 1000
        time.sleep(0.2)


def release():
    headers = {"Authorization": f"Bearer {token}"}
    urllib.request.urlopen(urllib.request.Request(url + "release", method="POST", headers=headers), timeout=1)


threading.Thread(target=ask, daemon=True).start()
while True:
    if time.monotonic() < until:
        print("started", flush=True)
        while time.monotonic() < until:
            print("step", flush=True)  # One step of the work.
            time.sleep(0.2)
        print("stopped", flush=True)
        with contextlib.suppress(OSError):  # It was lost.
            release()
    time.sleep(0.05)
