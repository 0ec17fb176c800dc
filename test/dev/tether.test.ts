import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { afterEach, describe, expect, it } from '@jest/globals';
import { spawnTethered, type TetheredProcess } from '../../dev/tether';
import { expectGone } from '../harness/gone';

/** Says `ready`, and each of the signals that it gets; ends on SIGTERM unless it is told to ignore it. */
const COMMAND = `
process.on('SIGINT', () => console.log('SIGINT'));
process.on('SIGTERM', () => { console.log('SIGTERM'); if (!process.env.IGNORE) process.exit(7); });
setInterval(() => {}, 1000);
console.log('ready');
`;

/** A shell that starts a program in the background, prints its process id and waits. */
const WITH_GRANDCHILD = ['-c', 'sleep 60 & echo $!; wait'];

describe('a tethered command', () => {
  const started: TetheredProcess[] = [];
  const parents: Parent[] = [];

  afterEach(async () => {
    await Promise.all(started.splice(0).map((child) => child.stop()));
    for (const parent of parents.splice(0)) parent.process.kill('SIGKILL');
  });

  async function start(command: string, args: string[], env: NodeJS.ProcessEnv = {}, graceMs = 5_000) {
    const child = await spawnTethered(command, args, {
      env: { PATH: process.env.PATH, ...env },
      stdout: 'pipe',
      graceMs,
    });
    started.push(child);
    if (child.stdout === null) throw new Error('stdout is a pipe');
    const lines = createInterface(child.stdout);
    return { child, lines, firstLine: (await once(lines, 'line')) as [string] };
  }

  async function startParent(...command: string[]): Promise<Parent> {
    const script = path.resolve(__dirname, 'parent.ts');
    const child = spawn(process.execPath, ['--import', 'tsx', script, 'command', ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
      // Its own process group, as a terminal gives to what one types.
      detached: true,
    });
    const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
    const parent = { process: child, lines, commandPid: Number(await nextOf(lines)) };
    parents.push(parent);
    return parent;
  }

  it('ends on stop() with its own exit code, after SIGTERM', async () => {
    const { child } = await start(process.execPath, ['-e', COMMAND]);
    expect(await child.stop()).toEqual({ code: 7, signal: null });
    await expectGone(child.pid, 0);
  });

  it('can be stopped twice and after its end', async () => {
    const { child } = await start(process.execPath, ['-e', COMMAND]);
    await Promise.all([child.stop(), child.stop()]);
    expect(await child.stop()).toEqual({ code: 7, signal: null });
    expect(() => {
      child.kill();
    }).not.toThrow();
  });

  it('is killed when it ignores SIGTERM beyond the grace', async () => {
    const { child } = await start(process.execPath, ['-e', COMMAND], { IGNORE: '1' }, 200);
    expect(await child.stop()).toEqual({ code: null, signal: 'SIGKILL' });
  });

  it('takes what it has started with it', async () => {
    const { child, firstLine } = await start('sh', WITH_GRANDCHILD);
    await child.stop();
    await expectGone(Number(firstLine[0]));
  });

  it('has the given environment and no other', async () => {
    const child = await spawnTethered(process.execPath, ['-p', 'JSON.stringify(process.env)'], {
      env: { ONLY: 'this' },
      stdout: 'pipe',
    });
    const output = child.stdout === null ? '' : await text(child.stdout);
    expect(JSON.parse(output)).toEqual({ ONLY: 'this' });
  });

  it('that cannot be started is an error with its name', async () => {
    await expect(spawnTethered('/nowhere/command', [], { env: {} })).rejects.toThrow(
      "can't start /nowhere/command: spawn /nowhere/command ENOENT",
    );
  });

  it('ends within its grace when the parent is killed with SIGKILL', async () => {
    const parent = await startParent(process.execPath, '-e', COMMAND);
    parent.process.kill('SIGKILL');
    await expectGone(parent.commandPid);
  });

  it('takes its own children with it when the parent is killed with SIGKILL', async () => {
    const parent = await startParent('sh', ...WITH_GRANDCHILD);
    const grandchild = Number(await nextOf(parent.lines));
    parent.process.kill('SIGKILL');
    await expectGone(grandchild);
  });

  it('does not get the Ctrl-C that its parent gets: the parent decides when it stops', async () => {
    const parent = await startParent(process.execPath, '-e', COMMAND);
    expect(await nextOf(parent.lines)).toBe('ready');
    process.kill(-(parent.process.pid ?? NaN), 'SIGINT');
    expect([await nextOf(parent.lines), await nextOf(parent.lines)]).toEqual(['SIGTERM', undefined]);
    await expectGone(parent.commandPid);
  });
});

interface Parent {
  readonly process: ChildProcessByStdio<null, Readable, null>;
  /** Its lines in order, none of which is lost while nobody asks for it. */
  readonly lines: AsyncIterator<string, unknown>;
  readonly commandPid: number;
}

/** The next line, or undefined after the last. */
async function nextOf(lines: AsyncIterator<string, unknown>): Promise<string | undefined> {
  const { done, value } = await lines.next();
  return done === true ? undefined : value;
}
