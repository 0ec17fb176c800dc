import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';

/** More connections than any backlog of 1 could hold. */
const MAX_FILLERS = 64;

/** On one machine a connection is made in well under this, unless the backlog is full. */
const FULL_AFTER_MS = 300;

/**
 * A port of 127.0.0.1 to which no connection can be made, and which refuses none: its process is stopped, and its
 * backlog is full. It looks like a host behind a firewall that drops packets.
 */
export async function stoppedListener(): Promise<{ port: number; stop: () => Promise<void> }> {
  const program = `require('net').createServer().listen({ host: '127.0.0.1', port: 0, backlog: 1 }, function () {
    process.stdout.write(String(this.address().port) + '\\n', () => process.kill(process.pid, 'SIGSTOP'));
  })`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  let fillers: Socket[] = [];
  const stop = async () => {
    for (const filler of fillers) filler.destroy();
    child.kill('SIGKILL');
    await exited;
  };
  try {
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const port = Number(line.toString());
    fillers = await fillBacklog(port);
    return { port, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Makes connections to a port of 127.0.0.1 whose process is stopped, until it takes no further one.
 *
 * @returns the connections, whose end makes room again
 */
export async function fillBacklog(port: number): Promise<Socket[]> {
  const fillers: Socket[] = [];
  while (fillers.length < MAX_FILLERS) {
    const filler = connect(port, '127.0.0.1');
    filler.on('error', () => undefined);
    if (!(await connectsSoon(filler))) {
      filler.destroy();
      return fillers;
    }
    fillers.push(filler);
  }
  for (const filler of fillers) filler.destroy();
  throw new Error(`the backlog took ${MAX_FILLERS} connections`);
}

function connectsSoon(socket: Socket): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => {
      resolve(false);
    }, FULL_AFTER_MS);
    socket.once('connect', () => {
      clearTimeout(timer);
      resolve(true);
    });
  });
}
