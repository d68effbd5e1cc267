"""Progress goes to stderr; stdout is the tables."""

import sys
import time


def say(message):
    print(f"bench [{time.strftime('%H:%M:%S')}]: {message}", file=sys.stderr, flush=True)
