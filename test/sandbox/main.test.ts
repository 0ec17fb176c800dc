import { afterEach, describe, expect, it } from '@jest/globals';
import { CommanderError } from 'commander';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { SandboxControl } from '../../sandbox';
import { readFlags } from '../../sandbox/flags';

const ROOT = join(__dirname, '../..');
const started: ChildProcess[] = [];

afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

/** The program as `npm run sandbox` starts it, with what it has printed so far. */
function sandbox(flags: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'sandbox/main.ts', ...flags], {
    cwd: ROOT,
    env: { ...process.env, ...env },
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
    const { output, printed } = sandbox(['--port', String(port), '--turn', '50ms']);
    await printed(/Every request gets a line below/);
    expect(output.stdout).toContain(`export AGENT_API_BASE_URL=http://127.0.0.1:${port}\n`);
    expect(output.stdout).toContain('npm run starter -- send --project docs --job job-1 --prompt "');
    expect(output.stdout).toMatch(/docs +job-5 +archived +http/);
    const key = /export AGENT_API_KEY=(\S+)/.exec(output.stdout)?.[1] ?? '';
    const job = `http://127.0.0.1:${port}/v2/agent/docs/job/job-1`;
    const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
    const reply = await fetch(`${job}/message`, { method: 'POST', headers, body: '{"prompt":"Go on."}' });
    expect(((await reply.json()) as { status: string }).status).toBe('active');
    const control = new SandboxControl(`http://127.0.0.1:${port}`);
    expect(await control.journal({ processed: true })).toHaveLength(1);
    await printed(/^POST \/v2\/agent\/docs\/job\/job-1\/message 200 \d+ ms · processed as turn 1$/m);
    expect(output.stdout.split(key)).toHaveLength(2);
  });

  it('switches on the faults of its flags and says so', async () => {
    const flags = [
      '--port',
      '0',
      '--base-path',
      '/api/',
      '--fault',
      'status=503:times=1@docs/job-1',
      '--fault',
      'html@docs/job-2',
    ];
    const { printed } = sandbox(flags);
    const [, baseUrl = ''] = await printed(/AGENT_API_BASE_URL=(\S+)/);
    await printed(/Faults switched on: status \(docs\/job-1, 1 times\), html \(docs\/job-2\)/);
    expect(baseUrl).toMatch(/\/api$/);
    expect((await fetch(`${baseUrl}/v2/agent/docs/job/job-1`)).status).toBe(503);
    expect((await fetch(`${baseUrl}/v2/agent/docs/job/job-2`)).status).toBe(200);
  });

  it('uses the key of SANDBOX_API_KEY and does not print it', async () => {
    const key = 'sandbox_from_outside';
    const { output, printed } = sandbox(['--port', '0'], { SANDBOX_API_KEY: key });
    const [, baseUrl = ''] = await printed(/AGENT_API_BASE_URL=(\S+)/);
    await printed(/Every request/);
    const reply = await fetch(`${baseUrl}/v2/agent/docs/job/job-1`, {
      headers: { authorization: `Bearer ${key}` },
    });
    expect(reply.status).toBe(200);
    expect(output.stdout).toContain('export AGENT_API_KEY="$SANDBOX_API_KEY"');
    expect(output.stdout).not.toContain(key);
  });

  it.each(['SIGINT', 'SIGTERM'] as const)(
    '%s ends it with 0, also while a request is held',
    async (signal) => {
      const { child, closed, printed, output } = sandbox(['--port', '0', '--fault', 'hang']);
      const [, baseUrl = ''] = await printed(/AGENT_API_BASE_URL=(\S+)/);
      await printed(/Every request/);
      const held = fetch(`${baseUrl}/v2/agent/docs/job/job-1`).catch(() => 'cut off');
      await new SandboxControl(baseUrl).waitFor({ fault: 'hang' });
      child.kill(signal);
      expect(await closed).toBe(0);
      expect(await held).toBe('cut off');
      expect(output.stderr).toBe('');
    },
  );

  it('--list-faults lists them and ends', async () => {
    const text = sandbox(['--list-faults']);
    const markdown = sandbox(['--list-faults', 'markdown']);
    expect([await text.closed, await markdown.closed]).toEqual([0, 0]);
    expect(text.output.stdout).toMatch(/^ {2}processed-then-close +processes the message and closes/m);
    expect(markdown.output.stdout).toContain('| `processed-then-close` | processes the message');
  });

  it('says that a port is taken and what to do', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { closed, output } = sandbox(['--port', String(port)]);
    expect(await closed).toBe(1);
    expect(output.stderr).toBe(
      `error: port ${port} on 127.0.0.1 is taken; choose another with --port, or --port 0 for a free one\n`,
    );
    server.close();
  });

  it('refuses a key that no header can carry', async () => {
    const { closed, output } = sandbox(['--port', '0'], { SANDBOX_API_KEY: 'two words' });
    expect(await closed).toBe(1);
    expect(output.stderr).toMatch(/^error: SANDBOX_API_KEY must consist of printable/);
    expect(output.stderr).not.toContain('two words');
  });
});

describe('bad flags', () => {
  it('end the program with 2, with the message on stderr and nothing on stdout', async () => {
    const { closed, output } = sandbox(['--fault', 'htp-503']);
    expect(await closed).toBe(2);
    expect(output.stderr).toMatch(/did you mean http-503\?/);
    expect(output.stdout).toBe('');
  });

  it.each([
    [
      ['--port', '99999'],
      /'--port <port>' argument '99999' is invalid. It must be a whole number from 0 to 65535/,
    ],
    [['--fault', 'htp-503'], /there is no fault "htp-503"; did you mean http-503\?/],
    [['--turn', '5'], /"5" needs a unit/],
    [['--base-path', '/sandbox'], /It must be a path such as \/api/],
    [['--messages-per-hour', '0'], /It must be a whole number from 1 to 1000000, or off/],
    [['--while-active', 'wait'], /Allowed choices are interrupt, queue/],
    [['--prot', '1'], /unknown option '--prot'/],
    [['start'], /too many arguments/],
  ])('%j get one clear message', (flags, words) => {
    let complaint = '';
    expect(() => readFlags(flags, (text) => (complaint += text))).toThrow(CommanderError);
    expect(complaint).toMatch(words);
  });
});
