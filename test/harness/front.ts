import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { spawnTethered, type TetheredProcess } from '../../dev/tether';
import { eventually } from './eventually';

/** Hands every connection on, byte by byte. The kernel keeps two that it has not taken up, and drops any further one. */
const PROGRAM = `
const { connect, createServer } = require('net');
const server = createServer((near) => {
  const far = connect(Number(process.argv[1]), '127.0.0.1');
  for (const [one, other] of [[near, far], [far, near]]) {
    one.pipe(other);
    one.on('error', () => other.destroy());
  }
});
server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => console.log(server.address().port));
`;

/** The states of a connection in /proc/net/tcp. */
const STATES = { connecting: '02', connected: '01', listening: '0A' } as const;

/** More than the kernel keeps. */
const FILLERS = 8;

/** A process of its own before a port of this machine, which can be made deaf to new connections. */
export class Front {
  private constructor(
    private readonly process: TetheredProcess,
    readonly port: number,
  ) {}

  static async open(target: number): Promise<Front> {
    const program = ['-e', PROGRAM, String(target)];
    const process_ = await spawnTethered(process.execPath, program, { env: {}, stdout: 'pipe' });
    if (process_.stdout === null) throw new TypeError('the front has no output');
    const [line] = (await once(process_.stdout, 'data')) as [Buffer];
    return new Front(process_, Number(line.toString()));
  }

  /** From now on a new connection is neither made nor refused. */
  async deafen(): Promise<void> {
    this.process.kill('SIGSTOP');
    const fillers = Array.from({ length: FILLERS }, () =>
      connect(this.port, '127.0.0.1').on('error', () => undefined),
    );
    await eventually('it stands still and can take no connection', async () => {
      const isStopped = (await readFile(`/proc/${this.process.pid}/stat`, 'utf8')).includes(') T ');
      return isStopped && (await this.kept()) === 2;
    });
    // What it has not taken up stays there, and those that found no room are out of the way.
    for (const filler of fillers) filler.destroy();
  }

  /** Connections that were tried meanwhile are made as soon as the kernel tries again: within 1, 2 or 4 s. */
  hear(): void {
    this.process.kill('SIGCONT');
  }

  /** Waits until somebody's connection to it is in that state. @returns the port at the other end */
  async meets(state: 'connecting' | 'connected', localPort?: number): Promise<number> {
    const isMeant = (each: { localPort: number; state: string }): boolean =>
      each.state === STATES[state] && (localPort ?? each.localPort) === each.localPort;
    const found = await eventually(
      `somebody is ${state} to port ${this.port}`,
      async () => (await this.connections()).find(isMeant),
      { intervalMs: 10 },
    );
    return found.localPort;
  }

  async close(): Promise<void> {
    this.process.kill('SIGKILL');
    await this.process.stop();
  }

  /** How many connections the kernel has made and it has not taken up. */
  private async kept(): Promise<number | undefined> {
    const isOwn = (each: Row): boolean => each.state === STATES.listening && each.local === this.port;
    return (await rows()).find(isOwn)?.received;
  }

  /** The connections to it, from the side that makes them. */
  private async connections(): Promise<{ localPort: number; state: string }[]> {
    const own = (await rows()).filter(({ remote }) => remote === this.port);
    return own.map(({ local, state }) => ({ localPort: local, state }));
  }
}

/** A socket of this machine. `received`: the bytes that wait, or the connections where it listens. */
interface Row {
  readonly local: number;
  readonly remote: number;
  readonly state: string;
  readonly received: number;
}

async function rows(): Promise<Row[]> {
  const hexadecimal = (pair = ''): number => parseInt(pair.split(':')[1] ?? '', 16);
  return (await readFile('/proc/net/tcp', 'utf8'))
    .split('\n')
    .slice(1, -1)
    .map((line) => {
      const [, local, remote, state = '', queues] = line.trim().split(/\s+/);
      const [localPort, remotePort, received] = [local, remote, queues].map(hexadecimal);
      return { local: localPort ?? 0, remote: remotePort ?? 0, state, received: received ?? 0 };
    });
}
