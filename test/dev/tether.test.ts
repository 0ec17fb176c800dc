import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { eventually } from '../harness/eventually';

/** Says `ready`, and each of the signals that it gets; ends on SIGTERM. */
const COMMAND = `
process.on('SIGINT', () => console.log('SIGINT'));
process.on('SIGTERM', () => { console.log('SIGTERM'); process.exit(7); });
setInterval(() => {}, 1000);
console.log('ready');
`;

describe('a tethered command', () => {
  let parent: ChildProcessByStdio<null, Readable, null>;
  afterEach(() => void parent.kill('SIGKILL'));

  /** @returns the lines of both: the parent's first one is the process id of the command, and comes in any order */
  function startParent(graceMs: number, ...command: string[]): AsyncIterator<string, unknown> {
    const script = path.resolve(__dirname, 'parent.ts');
    parent = spawn(process.execPath, ['--import', 'tsx', script, String(graceMs), ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // Its own process group, as a terminal gives to what one types.
      detached: true,
    });
    return createInterface(parent.stdout)[Symbol.asyncIterator]();
  }

  it('ends within its grace when the parent is killed with SIGKILL, and takes with it what it has started', async () => {
    const lines = startParent(2_000, 'sh', '-c', 'sleep 60 & echo $!; wait');
    const pids = [(await lines.next()).value, (await lines.next()).value];
    parent.kill('SIGKILL');
    for (const pid of pids) await expectGone(pid);
  });

  it('does not get the Ctrl-C that its parent gets: the parent decides when it stops', async () => {
    const lines = startParent(60_000, process.execPath, '-e', COMMAND);
    const words = [(await lines.next()).value, (await lines.next()).value];
    expect(words).toContain('ready');
    process.kill(-(parent.pid ?? NaN), 'SIGINT');
    expect([await lines.next(), (await lines.next()).done]).toMatchObject([{ value: 'SIGTERM' }, true]);
    await expectGone(words.find((word) => word !== 'ready'));
  });
});

/** @param pid a line that is a process id */
async function expectGone(pid: unknown): Promise<void> {
  expect(pid).toMatch(/^\d+$/);
  const gone = async () => {
    try {
      process.kill(Number(pid), 0);
    } catch {
      return true;
    }
    // A zombie has ended; some containers have an init process that never collects it.
    return (await readFile(`/proc/${Number(pid)}/stat`, 'utf8').catch(() => '')).includes(') Z ');
  };
  await eventually(`process ${Number(pid)} has ended`, gone);
}
