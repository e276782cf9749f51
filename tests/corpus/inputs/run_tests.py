"""Runs the unit tests that are named, and prints what happened without times, addresses and order of output."""

import contextlib
import os
import sys
import unittest


def main() -> int:
    result = unittest.TestResult()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]).run(result)
    print(f"{result.testsRun} run or, as the machine is, skipped; {len(result.expectedFailures)} failed as expected")
    for kind, tests in (("failed", result.failures), ("error", result.errors)):
        for test, trace in tests:
            print(kind, test)
            print(trace, file=sys.stderr)
    return not result.wasSuccessful()


if __name__ == "__main__":
    sys.exit(main())
