import { readdir, readFile } from 'node:fs/promises';

/** Linux counts the CPU time of processes in hundredths of a second on every architecture (time(7), USER_HZ). */
const TICKS_PER_SECOND = 100;

/** Returns the CPU time of a process since its start in seconds: user and system time, without its children. Requires Linux. */
export async function cpuSeconds(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The second field is the name in parentheses, which may contain blanks. The fields 14 and 15 are utime and stime (proc(5)).
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
  throw new Error('the process of the Temporal server was not found');
}

/** Returns the resident memory of a process in MiB: the current value and the peak. Requires Linux. */
export async function memoryMib(pid: number): Promise<{ readonly now: number; readonly peak: number }> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const mib = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(status)?.[1]) / 1_024;
  return { now: mib('VmRSS'), peak: mib('VmHWM') };
}
