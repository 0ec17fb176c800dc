import { afterEach, describe, expect, it } from '@jest/globals';
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { listFaults, parseFault } from '../../sandbox/fault-board';
import { FAULTS } from '../../sandbox/faults';
import { freePorts } from '../../dev/free-ports';
import { eventually } from '../harness/eventually';

let child: ChildProcess;
afterEach(() => void child.kill('SIGKILL'));

it('npm run sandbox prints its jobs, a line to run and the two variables, and these work', async () => {
  const [port = 0] = await freePorts(1);
  // As `npm run sandbox` starts it.
  const args = ['--import', 'tsx', 'sandbox/main.ts', '--port', String(port), '--turn', '50ms'];
  child = spawn(process.execPath, args, { cwd: join(__dirname, '../..') });
  let stdout = '';
  child.stdout?.on('data', (data: Buffer) => (stdout += data.toString()));
  const printed = (words: RegExp) => eventually(`it prints ${words.source}`, () => words.test(stdout));
  await printed(/Every request gets a line below/);
  expect(stdout).toContain(`export AGENT_API_BASE_URL=http://127.0.0.1:${port}\n`);
  expect(stdout).toContain('npm run starter -- send --project docs --job job-1 --prompt "');
  expect(stdout).toMatch(/docs +job-5 +archived +http/);
  const key = /export AGENT_API_KEY=(\S+)/.exec(stdout)?.[1] ?? '';
  const job = `http://127.0.0.1:${port}/v2/agent/docs/job/job-1`;
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const reply = await fetch(`${job}/message`, { method: 'POST', headers, body: '{"prompt":"Go on."}' });
  expect(((await reply.json()) as { status: string }).status).toBe('active');
  await printed(/^POST \/v2\/agent\/docs\/job\/job-1\/message 200 \d+ ms · processed as turn 1$/m);
  expect(stdout.split(key)).toHaveLength(2);
});

describe('a fault as JSON', () => {
  it('needs no more than a name, and is listed', () => {
    for (const name of Object.keys(FAULTS)) {
      expect(parseFault(JSON.stringify({ name }))).toEqual({ name });
      expect(listFaults()).toContain(`\n  ${name} `);
    }
    expect(listFaults()).toMatch(/^ +delay: how long \(default "2s"\)$/m);
  });

  it.each([
    ['slow', 'not JSON'],
    ['{"name":"xyzzy"}', 'name: there is no fault "xyzzy"; --list-faults shows them all'],
    ['{"name":"hang","tims":1}', 'Unrecognized key: "tims"'],
    ['{"name":"slow","parameters":{"delay":"5"}}', 'parameters.delay: must be a duration such as 500ms'],
    [
      '{"name":"processed-then-500","operation":"get"}',
      'operation: the fault processed-then-500 acts on message only',
    ],
  ])('%s is refused with a reason', (json, reason) => {
    expect(() => parseFault(json)).toThrow(reason);
  });
});
