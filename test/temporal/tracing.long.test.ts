import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { newSendCommand } from '../cli/commands/run-cli';
import { ProcessEnvironment } from '../harness/process-environment';
import { Program } from '../harness/program';
import { SpanReceiver, TRACING } from '../harness/span-receiver';
import { temporal } from '../harness/temporal';
import { TemporalGate } from '../harness/temporal-gate';
import { temporaryFolder } from '../harness/temporary-folder';

const folder = temporaryFolder();

/** A plugin with which the worker caches no workflow. Every workflow task therefore replays the history. */
const NO_CACHE = path.join(folder, 'no-cache.mjs');
writeFileSync(
  NO_CACHE,
  "export default { name: 'no-cache', configureWorker: (options) => ({ ...options, maxCachedWorkflows: 0 }) };",
);

/** Opens two gates to the Temporal server. The worker behind the second gate gets no task before the release. */
async function openGates() {
  const { address } = temporal();
  const [first, second] = await Promise.all([TemporalGate.open(address), TemporalGate.open(address)]);
  const polls = ['PollWorkflowTaskQueue', 'PollActivityTaskQueue'].map((name) => second.hold(name, 'call'));
  const release = () => {
    for (const hold of polls) hold.release();
  };
  const close = () => Promise.all([first.close(), second.close()]);
  return { first, second, release, close };
}

const ONCE = [
  ...['StartWorkflow:followUp', 'RunWorkflow:followUp', 'StartActivity:sendMessage'],
  ...['RunActivity:sendMessage', 'POST'],
];

it('no span is sent twice after replays and a killed worker, also if the worker had not reported its workflow task', async () => {
  const gates = await openGates();
  const test = async (receiver: SpanReceiver) => {
    const env = { ...receiver.env, FOLLOW_UP_PLUGINS: `${TRACING.FOLLOW_UP_PLUGINS},${NO_CACHE}` };
    await ProcessEnvironment.with({ env }, async (environment) => {
      const behind = ({ address }: TemporalGate) => environment.startWorker({ TEMPORAL_ADDRESS: address });
      const [lost, worker] = await Promise.all([behind(gates.first), behind(gates.second)]);
      // This task follows the send, so the spans of the send have ended.
      const held = gates.first.hold('RespondWorkflowTaskCompleted', 'call', 'getJob');
      const { args, projectId, workflowId } = newSendCommand(environment, { turn: { reads: 8 } });
      const variables = { FOLLOW_UP_TASK_QUEUE: environment.taskQueue, ...env };
      const cli = (...cliArgs: string[]) => Program.startCli(cliArgs, variables).waitForEnd();
      expect(await cli(...args, '--prompt', 'Fix it.', '--no-wait')).toMatchObject({ code: 0 });
      await held.waitForCall();
      await receiver.waitFor('StartActivity:sendMessage');
      lost.signal('SIGKILL');
      await lost.exited;
      gates.release();
      expect(await cli('watch', workflowId)).toMatchObject({ code: 0 });
      worker.signal('SIGTERM');
      expect(await worker.exited).toEqual({ code: 0, signal: null });
      expect(environment.posts({ projectId })).toHaveLength(1);
    });
    for (const name of ONCE) expect({ name, spans: receiver.named(name).length }).toEqual({ name, spans: 1 });
    expect(receiver.repeated()).toEqual([]);
  };
  await SpanReceiver.with(test).finally(() => gates.close());
});
