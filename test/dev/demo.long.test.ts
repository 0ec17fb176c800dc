import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import { describe, expect, it, jest } from '@jest/globals';
import { temporal } from '../harness/temporal';

/** The demo takes a minute; it waits for each of its workers alone for up to 90 s. `.ci/run` runs it with `--once`. */
jest.setTimeout(180_000);

const root = path.resolve(__dirname, '../..');

/** The demo as a user starts it, with a hook for what happens while it runs. */
async function demo(during: (stderr: string, pid: number) => void) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'dev/demo.ts', '--trouble'], {
    cwd: root,
    env: { ...process.env, CI: '', TEMPORAL_CLI_PATH: temporal().cli },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const heard = { stdout: '', stderr: '' };
  child.stdout.on('data', (data: Buffer) => (heard.stdout += data.toString()));
  child.stderr.on('data', (data: Buffer) => {
    heard.stderr += data.toString();
    if (child.pid !== undefined) during(heard.stderr, child.pid);
  });
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...heard };
}

/** The addresses that the demo has named and where somebody still listens. */
async function leftovers(stderr: string): Promise<number[]> {
  const ports = [...new Set([...stderr.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port)))];
  // Temporal's front end, its Web UI and the sandbox; a demo that stays up shows the HTTP API too.
  expect(ports.length).toBeGreaterThanOrEqual(3);
  const isOpen = async (port: number) => {
    const socket = connect(port, '127.0.0.1');
    const connected = once(socket, 'connect').then(() => true);
    return connected.catch(() => false).finally(() => socket.destroy());
  };
  const open = await Promise.all(ports.map(isOpen));
  return ports.filter((_, index) => open[index]);
}

describe('npm run demo', () => {
  it('--trouble loses the answer to the message, kills the worker, shows that the message arrived once, stays up, and ends everything when it is interrupted', async () => {
    let interrupted = false;
    const { code, stdout, stderr } = await demo((heard, pid) => {
      if (interrupted || !heard.includes('Everything stays up until Ctrl-C')) return;
      interrupted = true;
      process.kill(pid, 'SIGINT');
    });
    expect(stdout).toMatch(/^status +completed$/m);
    expect(stdout).toMatch(/^prLink +http:\/\/127\.0\.0\.1:\d+\/pull\/\d+$/m);
    expect(stdout).toMatch(/^delivery +accepted by read, 1 send$/m);
    const story = [
      /web ui +http:\/\/127\.0\.0\.1:\d+\/namespaces\/default\/workflows\/(follow-up%3Adocs)/,
      /SIGKILL to the worker, process (\d+)/,
      /another worker goes on, process (\d+)/,
      /the service's journal: POST \/v2\/agent\/docs\/job\/[\w-]+\/message · processed as turn 1 · (closed without an answer)/,
      /messages that the service has received: (1)$/m,
    ];
    const told = story.map((line) => line.exec(stderr)?.[1]);
    expect(told).not.toContain(undefined);
    expect(new Set(told).size).toBe(story.length);
    expect({ code, left: await leftovers(stderr) }).toEqual({ code: 0, left: [] });
  });
});
