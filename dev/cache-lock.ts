import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { every15Seconds } from './sign-of-life';

/** The holder touches the lock this often … */
const TOUCH_MS = 5_000;
/** … and one that was not touched for so long was left behind, also by a process of another machine or container. */
const STALE_MS = 30_000;

/**
 * Runs `work` in one process at a time. The lock saves work and protects nothing: should it be lost (a laptop that slept,
 * two processes that take over the same stale one), both do the work, each under a temporary name of its own.
 */
export async function withCacheLock<T>(
  file: string,
  say: (line: string) => void,
  work: () => Promise<T>,
): Promise<T> {
  if (!(await take(file))) {
    say('another process is getting the Temporal CLI; waiting for it');
    const quiet = every15Seconds((elapsed) => {
      say(`still waiting for the other process (${elapsed})`);
    });
    try {
      while (!(await take(file))) await sleep(500);
    } finally {
      quiet();
    }
  }
  const touching = setInterval(() => {
    // A touch that fails makes the lock stale at worst.
    utimes(file, new Date(), new Date()).catch(() => undefined);
  }, TOUCH_MS);
  try {
    return await work();
  } finally {
    clearInterval(touching);
    await rm(file, { force: true });
  }
}

async function take(file: string): Promise<boolean> {
  if (await create(file)) return true;
  if (!(await isLeftBehind(file))) return false;
  await rm(file, { force: true });
  return create(file);
}

async function create(file: string): Promise<boolean> {
  try {
    await writeFile(file, `${process.pid} ${os.hostname()}`, { flag: 'wx' });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false;
    throw error;
  }
}

async function isLeftBehind(file: string): Promise<boolean> {
  const touched = await stat(file).catch(() => null);
  if (touched === null) return false;
  if (Date.now() - touched.mtimeMs > STALE_MS) return true;
  const holder = /^(\d+) (.*)$/.exec(await readFile(file, 'utf8').catch(() => ''));
  return holder !== null && holder[2] === os.hostname() && !isAlive(Number(holder[1]));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
