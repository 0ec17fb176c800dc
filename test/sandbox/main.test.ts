import { afterAll, expect, it } from '@jest/globals';
import { listFaults, parseFault } from '../../sandbox/active-faults';
import { FAULTS } from '../../sandbox/faults';
import { Program } from '../harness/program';
import { ROOT } from '../harness/worker-process';

let sandbox: Program;
afterAll(() => {
  sandbox.signal('SIGKILL');
});

it('npm run sandbox prints its jobs, a command with a short --max-staleness and the reason, and the two variables, and a message with the variables is processed', async () => {
  // `npm run sandbox` has the same command.
  const args = ['--import', 'tsx', 'sandbox/main.ts', '--port', '0', '--turn', '10m'];
  sandbox = new Program(process.execPath, args, { cwd: ROOT });
  await sandbox.waitForOutput(/Every request gets a line below/);
  await sandbox.waitForOutput(
    /npm run starter -- send --project docs --job job-1 --prompt ".+" --max-staleness 2s\n/,
  );
  await sandbox.waitForOutput(
    /With the\ndefault of 30s, the result of a short turn can come up to 60 s after the message/,
  );
  await sandbox.waitForOutput(/docs +job-5 +archived +http/);
  const [, baseUrl = ''] = await sandbox.waitForOutput(
    /export AGENT_API_BASE_URL=(http:\/\/127\.0\.0\.1:\d+)\n/,
  );
  // The default port is 4010, and the sandbox must use a free port instead.
  expect(baseUrl).not.toContain(':4010');
  const [, key = ''] = await sandbox.waitForOutput(/export AGENT_API_KEY=(\S+)/);
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  const post = { method: 'POST', headers, body: '{"prompt":"Continue."}' };
  const reply = await fetch(`${baseUrl}/v2/agent/docs/job/job-1/message`, post);
  expect(await reply.json()).toMatchObject({ status: 'active', prLink: null });
  await sandbox.waitForOutput(
    /^POST \/v2\/agent\/docs\/job\/job-1\/message 200 \d+ ms · processed as turn 1$/m,
  );
  expect(sandbox.stdout.split(key)).toHaveLength(2);
});

it('every fault can be set with only a name, and is in the list of faults', () => {
  for (const name of Object.keys(FAULTS)) {
    expect(parseFault(JSON.stringify({ name }))).toEqual({ name });
    expect(listFaults()).toContain(`\n  ${name} `);
  }
  expect(listFaults()).toMatch(/^ +delay: the duration of the wait \(default "2s"\)$/m);
});

it.each([
  ['slow', 'must be JSON'],
  ['{"name":"hang","tims":1}', 'Unrecognized key: "tims"'],
  ['{"name":"slow","parameters":{"delay":"5"}}', 'parameters.delay: must be a duration such as 500ms'],
  ['{"name":"invisible-turn","operation":"get"}', 'operation: the fault invisible-turn acts only on message'],
])('the fault %s is rejected with the reason: %s', (json, reason) => {
  expect(() => parseFault(json)).toThrow(reason);
});
