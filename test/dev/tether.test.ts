import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { afterEach, expect, it } from '@jest/globals';
import { eventually } from '../harness/eventually';

let parent: ChildProcessByStdio<null, Readable, null>;
afterEach(() => void parent.kill('SIGKILL'));

it('a tethered command ends within its grace when its parent is killed with SIGKILL, and takes with it what it has started', async () => {
  const script = path.resolve(__dirname, 'parent.ts');
  const command = ['2000', 'sh', '-c', 'sleep 60 & echo $!; wait'];
  parent = spawn(process.execPath, ['--import', 'tsx', script, ...command], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  // The command's process id by the parent, and that of its child by itself.
  const lines = createInterface(parent.stdout)[Symbol.asyncIterator]() as AsyncIterator<string, unknown>;
  const pids = [(await lines.next()).value, (await lines.next()).value];
  parent.kill('SIGKILL');
  for (const pid of pids) await expectGone(pid);
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
