import { readFile } from 'node:fs/promises';
import { eventually } from './eventually';

/** Waits until a process has ended. @throws Error when it still runs after `limitMs` milliseconds */
export async function expectGone(pid: number, limitMs = 10_000): Promise<void> {
  await eventually(`process ${pid} has ended`, async () => !(await runs(pid)), { timeoutMs: limitMs });
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
