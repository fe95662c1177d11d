#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Print a table of targets: table.py FOLDER CPUS <ROWS

FOLDER holds LABEL.ROUND.json, results of `lunpath bench --json` (docs/result.schema.json), of
`fio --output-format=json`, or of perf_net. Each row is "what | wanted | expression", where wanted is
">= X", "<= X" or "-" (only shown), and the expression is over the labels of one round. It is
evaluated for each round; the table shows the median and the range of these values.
"""
import json
import os
import pathlib
import platform
import statistics
import sys


class Result:
    """One result of lunpath bench."""

    def __init__(self, data):
        self.data = data
        self.limits = data['limits']
        self.notes = set()

    def path(self, name=None):
        """The path of that name, or the only one."""
        found = [p for p in self.data['paths'] if name in (None, p['name'])]
        if len(found) != 1:
            raise KeyError(f'{len(found)} paths are called {name}')
        if found[0]['verify']['wrong_blocks']:
            self.notes.add((found[0]['name'], 'WRONG BYTES, its speed means nothing', None))
        return found[0]

    def point(self, name, direction, depth):
        """The measured point: a dict of all its members."""
        path = self.path(name)
        for point in path['results'][direction]['points']:
            if point['depth_asked'] == depth:
                for flag in point['flags']:
                    self.notes.add((f'{path["name"]} {direction}', flag, depth))
                return point
        raise KeyError(f'{path["name"]} has no {direction} at depth {depth}')

    def gbit(self, name, direction, depth):
        return self.point(name, direction, depth)['gbit_per_s']

    def mean(self, name, direction):
        """Gbit/s, mean of the depths from 4 to 128."""
        for point in self.path(name)['results'][direction]['points']:
            if point['depth_asked'] >= 4:
                self.point(name, direction, point['depth_asked'])
        return self.path(name)['results'][direction]['summary']['mean_gbit_per_s']

    def ns_per_io(self, name, direction, depth):
        return 1e9 / self.point(name, direction, depth)['ios_per_s']

    def syscalls_per_io(self, name, direction, depth):
        point = self.point(name, direction, depth)
        return point['app_syscalls_per_io'] + point['driver_syscalls_per_io']


class Fio:
    """One result of fio, one job."""

    def __init__(self, data):
        self.data = data
        self.notes = set()

    def gbit(self, direction):
        return self.data['jobs'][0][direction]['bw_bytes'] * 8 / 1e9


def read(data):
    """Wrap what a program said; perf_net's few numbers stay a dict."""
    if 'net' in data:
        return data
    return Fio(data) if 'jobs' in data else Result(data)


def load(folder):
    """Return the rounds in order, each a dict from label to result."""
    rounds = {}
    for file in folder.glob('*.*.json'):
        label, number, _ = file.name.split('.')
        text = file.read_text()
        data = json.loads(text[text.index('{'):])  # fio may put remarks in front
        rounds.setdefault(int(number), {})[label] = read(data)
    return [rounds[number] for number in sorted(rounds)]


def number(value):
    """Four significant digits, with SI letters where large."""
    for limit, letter in ((1e9, 'G'), (1e6, 'M'), (1e4, 'k')):
        if abs(value) >= limit:
            return f'{value / {"G": 1e9, "M": 1e6, "k": 1e3}[letter]:.4g} {letter}'
    return f'{value:.3f}' if abs(value) < 100 else f'{value:.4g}'


def verdict(wanted, values):
    """yes or no for the median, with a question mark when the rounds do not agree."""
    if wanted == '-':
        return ''
    sign, bound = wanted.split()
    good = [v >= float(bound) if sign == '>=' else v <= float(bound) for v in values]
    median = statistics.median(values)
    met = median >= float(bound) if sign == '>=' else median <= float(bound)
    return ('yes' if met else 'no') + ('' if len(set(good)) == 1 else ' ?')


def wanted_text(wanted):
    return wanted if wanted == '-' else f'{wanted.split()[0]} {number(float(wanted.split()[1]))}'


def print_notes(rounds):
    depths = {}
    for names in rounds:
        for result in names.values():
            for where, flag, depth in getattr(result, 'notes', ()):
                depths.setdefault((where, flag), set()).add(depth)
    for (where, flag), found in sorted(depths.items(), key=lambda item: item[0]):
        at = ', '.join(str(depth) for depth in sorted(filter(None, found)))
        print(f'note: {where}: {flag}' + (f' (depth {at})' if at else ''))


def print_machine(rounds, cpus):
    first = next((r for r in rounds[0].values() if isinstance(r, Result)), None)
    if first is None:
        uname, load_1min = platform.uname(), os.getloadavg()[0]
        print(f'{uname.machine}, {os.cpu_count()} CPUs, allowed {cpus}; Linux {uname.release}; '
              f'load {load_1min:.2f}')
        print(f'{len(rounds)} rounds, taking turns; median and range of each round\'s value\n')
        return
    env = first.data['environment']
    print(f'{env["cpu_model"]}, {env["cpus_online"]} CPUs, allowed {cpus}; {env["kernel"]}; '
          f'virtual machine: {env["virtual_machine"]}; governor {env["governor"]}; '
          f'load {env["load_1min"]:.2f}')
    for label, result in rounds[0].items():
        if isinstance(result, Result):
            print(f'{label}: {result.data["environment"]["placement"]}')
    print(f'{len(rounds)} rounds, taking turns; median and range of each round\'s value\n')


def main(folder, cpus):
    rounds = load(pathlib.Path(folder))
    rows = [[cell.strip() for cell in line.split('|')] for line in sys.stdin if line.strip()]
    width = max(len(row[0]) for row in rows)
    print_machine(rounds, cpus)
    print(f'{"target":{width}}  {"wanted":>9}  {"measured":>9}  {"range":19}  met')
    for what, wanted, expression in rows:
        code = compile(expression, what, 'eval')
        values = [eval(code, {}, dict(names)) for names in rounds]  # rows come from our scripts
        spread = f'{number(min(values))} .. {number(max(values))}'
        line = (f'{what:{width}}  {wanted_text(wanted):>9}  '
                f'{number(statistics.median(values)):>9}  {spread:19}  {verdict(wanted, values)}')
        print(line.rstrip())
    print_notes(rounds)


if __name__ == '__main__':
    main(*sys.argv[1:])
