import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { afterEach, describe, expect, it } from '@jest/globals';
import { run } from '../../../src/cli/program';

const cleanUps: (() => void)[] = [];
afterEach(() => {
  for (const cleanUp of cleanUps.splice(0)) cleanUp();
});

/** The port of a server that accepts connections and says nothing. */
async function silentPort(): Promise<number> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => sockets.push(socket.on('error', () => undefined)));
  cleanUps.push(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return (server.address() as AddressInfo).port;
}

async function starter(args: string[], env: Record<string, string> = {}) {
  let stdout = '';
  let stderr = '';
  const code = await run({
    args,
    env: { TEMPORAL_CONFIG_FILE: '/nowhere/temporal.toml', ...env },
    stdin: Readable.from([]),
    stdout: { write: (text) => (stdout += text) },
    stderr: { write: (text) => (stderr += text) },
    scriptPath: '/usr/bin/agent-follow-up',
    version: '1.2.3',
  });
  return { code, stdout, stderr };
}

const SEND = ['send', '--project', 'p', '--job', 'j'];

describe('usage', () => {
  it('help is the result, teaches by example, and lists exit codes and environment', async () => {
    const { code, stdout, stderr } = await starter(['--help']);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    for (const word of [
      'Examples:',
      'Exit codes:',
      'TEMPORAL_ADDRESS',
      'FOLLOW_UP_TASK_QUEUE',
      'send',
      'setup',
    ]) {
      expect(stdout).toContain(word);
    }
  });

  it.each(['send', 'status', 'watch', 'list', 'poll-now', 'extend', 'resolve', 'cancel', 'setup'])(
    'there is help for %s',
    async (command) => {
      const { code, stdout } = await starter([command, '--help']);
      expect(code).toBe(0);
      expect(stdout).toContain(`agent-follow-up ${command}`);
    },
  );

  it.each(['run', 'status', 'watch', 'results', 'pause', 'resume', 'concurrency', 'cancel', 'retry'])(
    'there is help for batch %s',
    async (command) => {
      const { code, stdout } = await starter(['batch', command, '--help']);
      expect(code).toBe(0);
      expect(stdout).toContain(`agent-follow-up batch ${command}`);
    },
  );

  it('the version is asked for', async () => {
    expect(await starter(['--version'])).toEqual({ code: 0, stdout: '1.2.3\n', stderr: '' });
  });

  it('without a command the help goes to stderr', async () => {
    const { code, stdout, stderr } = await starter([]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain('Usage: agent-follow-up');
  });

  it.each([
    ['an unknown command', ['snd'], "unknown command 'snd'", 'Did you mean send?'],
    ['an unknown flag', [...SEND, '--promt', 'x'], "unknown option '--promt'", 'Did you mean --prompt?'],
    ['a flag without its value', [...SEND, '--deadline'], '--deadline', 'argument missing'],
    ['a missing argument', ['status'], 'workflow-id', 'missing required argument'],
    ['one argument too many', ['status', 'a', 'b'], 'too many arguments', '--help'],
  ])('%s is told with what is right', async (_, args, problem, remedy) => {
    const { code, stdout, stderr } = await starter(args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(stderr).toContain(problem);
    expect(stderr).toContain(remedy);
  });
});

describe('invalid input', () => {
  it('is told in full before anything is connected, and as one JSON document', async () => {
    const { code, stdout, stderr } = await starter(
      ['send', '--project', '..', '--prompt', '', '--deadline', '10', '--json'],
      { TEMPORAL_ADDRESS: '127.0.0.1:1' },
    );
    expect(code).toBe(2);
    for (const flag of ['--project:', '--job: is missing', '--prompt or --prompt-file:', '--deadline:'])
      expect(stderr).toContain(flag);
    expect(JSON.parse(stdout)).toMatchObject({
      type: 'InvalidRequest',
      details: { problems: expect.arrayContaining(['--job: is missing']) },
    });
  });

  it.each([
    [['extend', 'w', '30'], 'duration: "30" needs a unit'],
    [['list', '--limit', '0'], '--limit: must be a whole number from 1 to 10000; it is "0"'],
    [['list', '--phase', 'finished'], '--phase: "finished" is not a phase; give one of baseline'],
  ])('%j is refused with the field named', async (args, message) => {
    const { code, stderr } = await starter(args);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

describe('a Temporal that is not there', () => {
  it('is one message with the address, the reason and the remedy', async () => {
    const { code, stdout, stderr } = await starter([...SEND, '--prompt', 'x', '--json'], {
      TEMPORAL_ADDRESS: '127.0.0.1:1',
    });
    expect(code).toBe(1);
    expect(stderr).toContain("Can't reach Temporal at 127.0.0.1:1: nothing listens there (ECONNREFUSED)");
    expect(stderr).toContain('TEMPORAL_ADDRESS');
    expect(stderr).not.toMatch(/\n\s+at /);
    expect(JSON.parse(stdout)).toMatchObject({ type: 'Unreachable' });
  });

  it('that accepts and never answers is given up in bounded time', async () => {
    const port = await silentPort();
    const { code, stderr } = await starter(['status', 'w'], { TEMPORAL_ADDRESS: `127.0.0.1:${port}` });
    expect(code).toBe(1);
    expect(stderr).toContain('refuses plaintext; set TEMPORAL_TLS');
  }, 12_000);

  it.each([['http://localhost:7233'], ['localhost:7233/path']])('has no address like %s', async (address) => {
    const { code, stderr } = await starter(['status', 'w'], { TEMPORAL_ADDRESS: address });
    expect(code).toBe(2);
    expect(stderr).toContain('TEMPORAL_ADDRESS: is not host:port');
  });

  it('a client certificate that cannot be read is told without a stack', async () => {
    const { code, stderr } = await starter(['status', 'w'], {
      TEMPORAL_ADDRESS: 'localhost:7233',
      TEMPORAL_TLS_CLIENT_CERT_PATH: '/nowhere/cert.pem',
      TEMPORAL_TLS_CLIENT_KEY_PATH: '/nowhere/key.pem',
    });
    expect(code).toBe(2);
    expect(stderr).toContain('/nowhere/cert.pem');
    expect(stderr.trim().split('\n')).toHaveLength(1);
  });
});
