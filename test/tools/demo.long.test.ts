import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, it } from '@jest/globals';
import { Program } from '../harness/program';
import { temporal } from '../harness/temporal';
import { ROOT } from '../harness/worker-process';

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  const connected = once(socket, 'connect').then(() => true);
  return connected.catch(() => false).finally(() => socket.destroy());
}

it('npm run demo -- --trouble loses the response to the POST, kills the worker, shows that the message arrived once, and stops every process on Ctrl-C', async () => {
  const env = { ...process.env, CI: '', TEMPORAL_CLI_PATH: temporal().cli };
  const args = ['--import', 'tsx', 'tools/dev/demo.ts', '--trouble'];
  const demo = new Program(process.execPath, args, { cwd: ROOT, env });
  await demo.waitForOutput(/Everything stays up until Ctrl-C/);
  demo.signal('SIGINT');
  const { code, stdout, stderr } = await demo.waitForEnd();
  for (const line of [
    /^status +completed$/m,
    /^prLink +http:\/\/127\.0\.0\.1:\d+\/pull\/\d+$/m,
    /^delivery +accepted \(confirmed by read\), 1 send$/m,
  ])
    expect(stdout).toMatch(line);
  for (const line of [
    /Web UI +http:\/\/127\.0\.0\.1:\d+\/namespaces\/default\/workflows\/follow-up%3Adocs/,
    /SIGKILL to the worker, process (\d+)\n[^]*another worker continues, process (?!\1\n)\d+/,
    /the agent service's journal: POST \/v2\/agent\/docs\/job\/[\w-]+\/message · processed as turn 1 · closed without a response/,
    /messages that the agent service received: 1$/m,
  ])
    expect(stderr).toMatch(line);
  const ports = new Set([...stderr.matchAll(/127\.0\.0\.1:(\d+)/g)].map(([, port]) => Number(port)));
  // The output has the ports of Temporal's frontend, the Web UI and the sandbox. A demo that stays up also shows the HTTP API.
  expect(ports.size).toBeGreaterThanOrEqual(3);
  const openPorts = await Promise.all([...ports].map(isOpen));
  expect({ code, openPorts }).toEqual({ code: 0, openPorts: openPorts.map(() => false) });
});
