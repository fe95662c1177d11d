#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Count the cases in a Meson test log: tally.py STAGE testlog.json

Prints one line a case, "pass|fail|skip TAB stage: test: case TAB reason", and on stderr what a
failed test said. A program that prints TAP counts case by case, any other one as a whole. A
program that ends before its plan is through, or badly without naming a failed case, adds a failure.
"""
import json
import re
import sys

CASE = re.compile(r'(not )?ok\b\s*\d*\s*-?\s*([^#]*)(?:#\s*SKIP\S*\s*(.*))?', re.IGNORECASE)
PLAN = re.compile(r'1\.\.(\d+)\s*$')


def read_tap(text):
    """Return (planned, [(status, name, reason)]); planned is None where there is no plan."""
    planned, cases, said = None, [], ''
    for line in text.splitlines():
        plan, case = PLAN.match(line), CASE.match(line)
        if plan:
            planned = int(plan.group(1))
        elif case:
            failed, name, skipped = case.groups()
            if skipped is not None:
                # cmocka writes "not ok 3 # SKIP name" and leaves the reason to a line before.
                name, reason = (name.strip(), skipped) if name.strip() else (skipped, said)
                cases.append(('skip', name, reason))
            else:
                cases.append(('fail' if failed else 'pass', name.strip(), ''))
            said = ''
        elif not line.startswith('#'):
            said = line.strip() or said
    return planned, cases


def count(test):
    """Return [(status, name, reason)] for one entry of the log."""
    result = test['result']
    text = test.get('stdout', '')
    planned, cases = read_tap(text)
    good = result in ('OK', 'SKIP', 'EXPECTEDFAIL')
    if planned is None or result == 'SKIP':
        said = text.strip().splitlines()
        status = 'skip' if result == 'SKIP' else 'pass' if good else 'fail'
        return [(status, '', said[-1] if status == 'skip' and said else result.lower())]
    if len(cases) < planned:
        cases.append(('fail', f'ended after {len(cases)} of {planned} cases', result.lower()))
    elif not good and not any(status == 'fail' for status, _, _ in cases):
        cases.append(('fail', 'ended badly', f'{result.lower()}, exit {test["returncode"]}'))
    return cases


def main(stage, path):
    with open(path, encoding='utf-8') as log:
        tests = [json.loads(line) for line in log]
    for test in tests:
        label = test['name'].split(' / ')[-1]
        cases = count(test)
        for status, name, reason in cases:
            print(status, ': '.join(filter(None, (stage, label, name))), reason, sep='\t')
        if any(status == 'fail' for status, _, _ in cases):
            said = test.get('stdout', '') + test.get('stderr', '')
            lines = [line for line in said.splitlines() if not line.startswith('ok ')]
            print(f'--- {stage}: {label}', *lines[-40:], sep='\n    ', file=sys.stderr)


if __name__ == '__main__':
    main(*sys.argv[1:])
