import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { listFaults, parseFault } from '../../sandbox/fault-board';
import { FAULTS } from '../../sandbox/faults';
import { eventually } from '../harness/eventually';

/** Each test starts a process that compiles its TypeScript, which takes seconds on a busy machine. */
jest.setTimeout(30_000);

const ROOT = join(__dirname, '../..');
const started: ChildProcess[] = [];

afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

/** The program as `npm run sandbox` starts it, with what it has printed so far. */
function sandbox(...flags: readonly string[]) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'sandbox/main.ts', ...flags], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const closed = once(child, 'close').then(([code]) => code as number | null);
  /** Waits until it has printed something that matches; fails when it ends before. */
  const printed = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(output.stdout);
      if (match !== null) return match;
      const ended = await Promise.race([
        once(child.stdout, 'data').then(() => false),
        closed.then(() => true),
      ]);
      if (ended && !pattern.test(output.stdout))
        throw new Error(`it ended: ${output.stdout}${output.stderr}`);
    }
  };
  return { child, output, closed, printed };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

describe('npm run sandbox', () => {
  it('prints its jobs, a line to run and the two variables, and these work', async () => {
    const port = await freePort();
    const { output, printed } = sandbox('--port', String(port), '--turn', '50ms');
    await printed(/Every request gets a line below/);
    expect(output.stdout).toContain(`export AGENT_API_BASE_URL=http://127.0.0.1:${port}\n`);
    expect(output.stdout).toContain('npm run starter -- send --project docs --job job-1 --prompt "');
    expect(output.stdout).toMatch(/docs +job-5 +archived +http/);
    const key = /export AGENT_API_KEY=(\S+)/.exec(output.stdout)?.[1] ?? '';
    const job = `http://127.0.0.1:${port}/v2/agent/docs/job/job-1`;
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const reply = await fetch(`${job}/message`, { method: 'POST', headers, body: '{"prompt":"Go on."}' });
    expect(((await reply.json()) as { status: string }).status).toBe('active');
    await printed(/^POST \/v2\/agent\/docs\/job\/job-1\/message 200 \d+ ms · processed as turn 1$/m);
    expect(output.stdout.split(key)).toHaveLength(2);
  });

  it('switches on the faults of its flags and says so', async () => {
    const [first, second] = [
      '{"name":"http-503","times":1,"jobId":"job-1"}',
      '{"name":"html","jobId":"job-2"}',
    ];
    const { printed } = sandbox('--port', '0', '--fault', first, '--fault', second);
    const [, baseUrl = ''] = await printed(/AGENT_API_BASE_URL=(\S+)/);
    const [said] = await printed(/Faults switched on: .*/);
    expect(said).toContain(`${first}, ${second}`);
    expect((await fetch(`${baseUrl}/v2/agent/docs/job/job-1`)).status).toBe(503);
    expect((await fetch(`${baseUrl}/v2/agent/docs/job/job-2`)).status).toBe(200);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    '%s ends it with 0, also while a request is held',
    async (signal) => {
      const { child, closed, printed, output } = sandbox('--port', '0', '--fault', '{"name":"hang"}');
      const [, baseUrl = ''] = await printed(/AGENT_API_BASE_URL=(\S+)/);
      await printed(/Every request/);
      const held = fetch(`${baseUrl}/v2/agent/docs/job/job-1`).catch(() => 'cut off');
      await eventually(
        'the request hangs',
        () => fetch(`${baseUrl}/sandbox/journal`).then((journal) => journal.text()),
        { until: (text) => text.includes('hang') },
      );
      child.kill(signal);
      expect(await closed).toBe(0);
      expect(await held).toBe('cut off');
      expect(output.stderr).toBe('');
    },
  );

  it('--list-faults lists them and ends', async () => {
    const { closed, output } = sandbox('--list-faults');
    expect(await closed).toBe(0);
    expect(output.stdout).toMatch(/^ {2}processed-then-close +processes the message and closes/m);
  });

  it('says that a port is taken and what to do', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { closed, output } = sandbox('--port', String(port));
    expect(await closed).toBe(1);
    expect(output.stderr).toBe(
      `error: port ${port} is taken; choose another with --port, or --port 0 for a free one\n`,
    );
    server.close();
  });

  it.each([
    [
      '--port',
      '99999',
      /'--port <port>' argument '99999' is invalid. It must be a whole number from 0 to 65535/,
    ],
    ['--fault', '{"name":"htp-503"}', /argument '.*' is invalid. name: there is no fault "htp-503"/],
    ['--turn', '5', /must be a duration such as 500ms/],
    ['--prot', '1', /unknown option '--prot'/],
  ])('%s %s ends it with 2 and one clear message', async (flag, value, words) => {
    const { closed, output } = sandbox(flag, value);
    expect(await closed).toBe(2);
    expect(output.stderr).toMatch(words);
    expect(output.stdout).toBe('');
  });
});

describe('a fault as JSON', () => {
  it('needs no more than a name, and is listed', () => {
    for (const name of Object.keys(FAULTS)) {
      expect(parseFault(JSON.stringify({ name }))).toEqual({ name });
      expect(listFaults()).toContain(`\n  ${name} `);
    }
    expect(listFaults()).toMatch(/^ +delay: how long \(default "2s"\)$/m);
    expect(listFaults()).toMatch(/^ +times: ends after acting on so many requests$/m);
  });

  it.each([
    ['slow', 'not JSON'],
    ['{"name":"xyzzy"}', 'name: there is no fault "xyzzy"; --list-faults shows them all'],
    ['{"name":"toString"}', 'name: there is no fault "toString"'],
    ['{}', 'name: '],
    ['{"name":"hang","tims":1}', 'Unrecognized key: "tims"'],
    ['{"name":"slow","parameters":{"dealy":"1s"}}', 'parameters: Unrecognized key: "dealy"'],
    ['{"name":"slow","parameters":{"delay":"5"}}', 'parameters.delay: must be a duration such as 500ms'],
    ['{"name":"hold","parameters":{"processed":"sometimes"}}', 'expected one of "before"|"after"|"never"'],
    ['{"name":"status","parameters":{"code":99}}', 'parameters.code: '],
    [
      '{"name":"http-429","parameters":{"retryAfter":"später"}}',
      'parameters.retryAfter: must be printable ASCII',
    ],
    ['{"name":"hang","times":0}', 'times: '],
    ['{"name":"hang","skip":-1}', 'skip: '],
    ['{"name":"hang","chance":2}', 'chance: '],
    [
      '{"name":"processed-then-500","operation":"get"}',
      'operation: the fault processed-then-500 acts on message only',
    ],
  ])('%s is refused with a reason', (json, reason) => {
    expect(() => parseFault(json)).toThrow(reason);
  });
});
