import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { spawnTethered } from '../../dev/tether';

/** Its backlog holds so few connections that they are soon used up. */
const PROGRAM = `
const server = require('net').createServer();
server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => console.log(server.address().port));
`;

/** The state of a connection in /proc/net/tcp whose first packet is not answered. */
const CONNECTING = '02';

/** On one machine a connection is made in well under this, unless the backlog is full. */
const FULL_AFTER_MS = 300;

/** A port of this machine on which a new connection is neither made nor refused: that of a process that stands still. */
export async function openDeafPort() {
  const program = await spawnTethered(process.execPath, ['-e', PROGRAM], { env: {}, stdout: 'pipe' });
  if (program.stdout === null) throw new TypeError('the program has no output');
  const [line] = (await once(program.stdout, 'data')) as [Buffer];
  const port = Number(line.toString());
  program.kill('SIGSTOP');
  const fillers: Socket[] = [];
  const isFull = async (): Promise<boolean> => {
    const filler = connect(port, '127.0.0.1').on('error', () => undefined);
    fillers.push(filler);
    const limit = { signal: AbortSignal.timeout(FULL_AFTER_MS) };
    const isMade = await once(filler, 'connect', limit).catch(() => false);
    return isMade === false && (await isConnecting(port));
  };
  while (!(await isFull()));
  // Its end makes room for no other: the kernel has answered none of its packets.
  fillers.pop()?.destroy();
  const close = async () => {
    program.kill('SIGKILL');
    await program.stop();
    for (const filler of fillers) filler.destroy();
  };
  return { port, close };
}

/** The kernel knows whether a connection is made; on a busy machine this process hears of it late. */
async function isConnecting(port: number): Promise<boolean> {
  const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').slice(1, -1);
  return rows.some((row) => {
    const [, , remote = '', state] = row.trim().split(/\s+/);
    return parseInt(remote.split(':')[1] ?? '', 16) === port && state === CONNECTING;
  });
}
