"""Measurements that other processes have not disturbed."""

import os
import subprocess
import sys
import time

from children import run

TICK = os.sysconf("SC_CLK_TCK")


def cpu_ticks():
    """{cpu: (busy, idle)} in clock ticks; stolen time counts as busy."""
    ticks = {}
    with open("/proc/stat", encoding="ascii") as stat:
        for line in stat:
            name, *fields = line.split()
            if name.startswith("cpu") and name != "cpu":
                user, nice, system, idle, iowait, irq, softirq, steal = map(int, fields[:8])
                busy = user + nice + system + irq + softirq + steal
                ticks[int(name[3:])] = (busy, idle + iowait)
    return ticks


def wait_until_idle(limit=300, idle_share=0.96):
    """
    Waits until every usable CPU was idle for a second; False when limit seconds pass first.  Says
    on stderr that it waits, once it takes longer.
    """
    end, said = time.monotonic() + limit, False
    while time.monotonic() < end:
        before = cpu_ticks()
        time.sleep(1)
        after = cpu_ticks()
        shares = []
        for cpu in os.sched_getaffinity(0):
            busy = after[cpu][0] - before[cpu][0]
            idle = after[cpu][1] - before[cpu][1]
            shares.append(idle / max(1, busy + idle))
        if min(shares) >= idle_share:
            return True
        if not said:
            said = True
            print("waiting up to %d s for an idle machine: others use %.1f of %d CPUs" %
                  (limit, len(shares) - sum(shares), len(shares)), file=sys.stderr)
    if said:
        print("not idle; going on, and what is measured will be marked", file=sys.stderr)
    return False


def run_alone(command, limit=300, tries=4, foreign_share=0.04):
    """
    Runs command once the machine is idle, again when others used more than foreign_share of
    one CPU meanwhile.  Returns (stdout, undisturbed).
    """
    output = ""
    for _ in range(tries):
        idle = wait_until_idle(limit)
        busy = sum(ticks[0] for ticks in cpu_ticks().values())
        used = os.times()
        start = time.monotonic()
        process = run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if process.returncode != 0:
            raise SystemExit("%s: exit status %d\n%s" % (command[0], process.returncode,
                                                         process.stderr[-2000:]))
        wall = time.monotonic() - start
        now = os.times()
        busy = (sum(ticks[0] for ticks in cpu_ticks().values()) - busy) / TICK
        own = (now.children_user + now.children_system + now.user + now.system
               - used.children_user - used.children_system - used.user - used.system)
        output = process.stdout
        # A tick of rounding per CPU.
        if idle and busy - own <= foreign_share * wall + os.cpu_count() / TICK:
            return output, True
        if not idle:
            break
    return output, False
