"""Runs in circus's own environment: one JSON command a line in, one answer a line out."""

import json
import sys

from circus.client import CircusClient
from circus.exc import CallError

client = CircusClient(endpoint=sys.argv[1], timeout=15)
for line in sys.stdin:
    try:
        answer = client.call(json.loads(line))
    except CallError as error:
        answer = {"status": "error", "reason": str(error)}
    print(json.dumps(answer), flush=True)
