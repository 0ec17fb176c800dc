import { randomInt } from 'node:crypto';
import getPort, { portNumbers } from 'get-port';

/** The first port of the first Jest worker, and the number of ports of each worker. */
const [FIRST_PORT, PORTS] = [10_000, 500];

/**
 * Returns a free port for a program that starts later. No other program gets this port in the meantime: the ports that the
 * operating system chooses start at 32768, each Jest worker has separate ports, and a process gets each port only once.
 */
export function freePort(): Promise<number> {
  const first = FIRST_PORT + PORTS * Number(process.env.JEST_WORKER_ID ?? 0);
  // Tests that run twice at the same time have the same ports. They seldom start at the same one.
  const start = first + randomInt(PORTS / 2);
  return getPort({ port: portNumbers(start, first + PORTS - 1), reserve: true });
}
