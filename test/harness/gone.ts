import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits until a process has ended. @throws Error when it still runs after `limitMs` milliseconds */
export async function expectGone(pid: number, limitMs = 10_000): Promise<void> {
  const deadline = Date.now() + limitMs;
  while (await runs(pid)) {
    if (Date.now() > deadline) throw new Error(`process ${pid} still runs after ${limitMs} ms`);
    await sleep(50);
  }
}

async function runs(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A zombie has ended; some containers have an init process that never collects it.
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return !stat.includes(') Z ');
}
