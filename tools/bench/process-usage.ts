import { readdir, readFile } from 'node:fs/promises';

/** Linux counts the CPU time of processes in hundredths of a second, on every architecture (time(7), USER_HZ). */
const TICKS_PER_SECOND = 100;

/** Seconds of CPU that a process has used since its start, user and system; its children not included. On Linux, as all here. */
export async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name, second and in parentheses, may hold blanks; utime and stime are the fields 14 and 15 (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/**
 * Returns the process ID of the Temporal server that this process has started, because the SDK does not report the ID. The name of
 * the server's program begins with `temporal`.
 */
export async function serverProcessId(): Promise<number> {
  const isServer = new RegExp(`^\\d+ \\(temporal.*\\) \\w ${process.pid} `);
  for (const name of await readdir('/proc')) {
    const stat = await readFile(`/proc/${name}/stat`, 'utf8').catch(() => '');
    if (isServer.test(stat)) return Number(name);
  }
  throw new Error('the Temporal server has no process');
}

/** Resident memory of a process in MiB: what it has now, and the most that it has had. */
export async function memoryMib(pid: number): Promise<{ readonly now: number; readonly peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1_024;
  return { now: mib('VmRSS'), peak: mib('VmHWM') };
}
