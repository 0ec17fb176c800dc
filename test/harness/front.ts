import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { spawnTethered, type TetheredProcess } from '../../dev/tether';
import { eventually } from './eventually';

/** Hands every connection on, byte by byte; its backlog holds so few that they are soon used up. */
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
const STATES = { connecting: '02', connected: '01' } as const;

/** On one machine a connection is made in well under this, unless the backlog is full. */
const FULL_AFTER_MS = 300;

/** A process of its own before a port of this machine, which can be made deaf to new connections. */
export class Front {
  private readonly fillers: Socket[] = [];

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
    for (;;) {
      const filler = connect(this.port, '127.0.0.1').on('error', () => undefined);
      if (await this.waits(filler)) return void filler.destroy();
      // Its end makes room again.
      this.fillers.push(filler);
    }
  }

  /** Connections that were tried meanwhile are made as soon as the kernel tries again: within 1, 2 or 4 s. */
  hear(): void {
    for (const filler of this.fillers) filler.destroy();
    this.process.kill('SIGCONT');
  }

  /** Waits until somebody's connection to it is in that state. */
  async meets(state: keyof typeof STATES, localPort?: number): Promise<number> {
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
    for (const filler of this.fillers) filler.destroy();
  }

  /** The connections to it, from the side that makes them. */
  private async connections(): Promise<{ localPort: number; state: string }[]> {
    const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').slice(1, -1);
    return rows.flatMap((row) => {
      const [, local = '', remote = '', state = ''] = row.trim().split(/\s+/);
      const [localPort, remotePort] = [local, remote].map((each) => parseInt(each.split(':')[1] ?? '', 16));
      return remotePort === this.port ? [{ localPort: localPort ?? 0, state }] : [];
    });
  }

  /** The kernel knows whether a connection is made; on a busy machine this process hears of it late. */
  private async waits(socket: Socket): Promise<boolean> {
    const limit = { signal: AbortSignal.timeout(FULL_AFTER_MS) };
    const isConnected = await once(socket, 'connect', limit).catch(() => false);
    return (
      isConnected === false && (await this.connections()).some(({ state }) => state === STATES.connecting)
    );
  }
}
