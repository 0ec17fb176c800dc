import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

/** Linux counts the CPU time of processes in hundredths of a second, on every architecture (time(7), USER_HZ). */
const TICKS_PER_SECOND = 100;

/** Seconds of CPU that a process has used since its start, user and system; its children not included. */
export async function cpuSeconds(pid: number): Promise<number> {
  if (process.platform !== 'linux') return secondsOf(await ps(pid, 'cputime'));
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
  // The name, second and in parentheses, may hold blanks; utime and stime are the fields 14 and 15 (proc(5)).
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

/** Resident memory of a process in bytes. */
export async function residentBytes(pid: number): Promise<number> {
  if (process.platform !== 'linux') return Number(await ps(pid, 'rss')) * 1_024;
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}

/** The most resident memory that a process has had, in bytes; without Linux what it has now. */
export async function peakBytes(pid: number): Promise<number> {
  if (process.platform !== 'linux') return residentBytes(pid);
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) * 1_024;
}

async function ps(pid: number, column: string): Promise<string> {
  const { stdout } = await promisify(execFile)('ps', ['-o', `${column}=`, '-p', String(pid)]);
  return stdout.trim();
}

/** `[[days-]hours:]minutes:seconds`, as ps prints a time. */
export function secondsOf(time: string): number {
  const [days, clock] = time.includes('-') ? time.split('-') : ['0', time];
  const seconds = (clock ?? '').split(':').reduce((sum, part) => sum * 60 + Number(part), 0);
  return Number(days) * 86_400 + seconds;
}
