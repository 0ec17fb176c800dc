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
  /** What parent and command say. */
  let lines: AsyncIterator<string, unknown>;
  afterEach(() => void parent.kill('SIGKILL'));

  /** @returns the process id of the command */
  async function startParent(...command: string[]): Promise<number> {
    const script = path.resolve(__dirname, 'parent.ts');
    parent = spawn(process.execPath, ['--import', 'tsx', script, ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // Its own process group, as a terminal gives to what one types.
      detached: true,
    });
    lines = createInterface(parent.stdout)[Symbol.asyncIterator]();
    return Number((await lines.next()).value);
  }

  it('ends within its grace when the parent is killed with SIGKILL, and takes with it what it has started', async () => {
    const command = await startParent('sh', '-c', 'sleep 60 & echo $!; wait');
    const started = Number((await lines.next()).value);
    parent.kill('SIGKILL');
    await expectGone(command);
    await expectGone(started);
  });

  it('does not get the Ctrl-C that its parent gets: the parent decides when it stops', async () => {
    const command = await startParent(process.execPath, '-e', COMMAND);
    expect((await lines.next()).value).toBe('ready');
    process.kill(-(parent.pid ?? NaN), 'SIGINT');
    expect([await lines.next(), (await lines.next()).done]).toMatchObject([{ value: 'SIGTERM' }, true]);
    await expectGone(command);
  });
});

async function expectGone(pid: number): Promise<void> {
  const gone = async () => {
    try {
      process.kill(pid, 0);
    } catch {
      return true;
    }
    // A zombie has ended; some containers have an init process that never collects it.
    return (await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')).includes(') Z ');
  };
  await eventually(`process ${pid} has ended`, gone, { timeoutMs: 10_000 });
}
