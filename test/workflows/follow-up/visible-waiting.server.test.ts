import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, it } from '@jest/globals';
import { collectWorkflowIds } from '../../harness/workflow-ids';
import { ENDLESS_TURN, FAST_OPTIONS, NOT_SENT_DELIVERY } from '../../harness/follow-up-under-test';
import { sharedEnvironment } from '../../harness/shared-environment';
import { eventually } from '../../../tools/lib/eventually';

const { open, follow } = sharedEnvironment();

const STATUS = 'awaiting_user_feedback';
/** The fault changes only `active`, so the baseline read of an idle job returns its known status. */
const UNKNOWN_STATUS = { name: 'unknown-status', operation: 'get', parameters: { word: STATUS } } as const;
const POLLS_ON = { ...FAST_OPTIONS, polling: { ...FAST_OPTIONS.polling, timerPolls: 0 } };

it.concurrent(
  'the progress of a watch shows an unknown status from the first poll on, and so does the list',
  async () => {
    const following = await follow(ENDLESS_TURN, POLLS_ON, UNKNOWN_STATUS);
    const progress = await following.waitForProgress(({ polls }) => polls > 0);
    expect(progress).toMatchObject({
      phase: 'watching',
      job: { status: STATUS },
      lastResponse: STATUS,
      evidence: null,
    });
    // The first poll is counted with its status too.
    expect(progress.responseCounts).toEqual({ [STATUS]: progress.polls });
    const { typedSearchAttributes } = await following.handle.describe();
    expect(typedSearchAttributes.get({ name: 'AgentJobStatus', type: 'KEYWORD' })).toBe(STATUS);
    (await open()).sandbox.clearFaults(following.key);
    following.changeJob({ status: 'completed' });
    expect((await following.result()).status).toBe('completed');
  },
);

it.concurrent(
  'the progress before the send shows the unknown status of a job that is not idle, and nothing is sent',
  async () => {
    const job = { status: 'active', ...ENDLESS_TURN } as const;
    const following = await follow(job, { ...FAST_OPTIONS, whenActive: 'wait' }, UNKNOWN_STATUS);
    const progress = await following.waitForProgress(({ phase }) => phase === 'waiting-for-job');
    expect(progress).toMatchObject({
      ...{ job: { status: STATUS }, lastResponse: STATUS, delivery: NOT_SENT_DELIVERY },
    });
    expect(following.posts()).toEqual([]);
    await following.handle.terminate();
  },
);

/** Returns the filters of the saved views in docs/progress.md by their names. */
function savedViews(): ReadonlyMap<string, string> {
  const page = readFileSync(path.join(__dirname, '../../../docs/progress.md'), 'utf8');
  const section = page.slice(page.indexOf('### Saved views'), page.indexOf('## In the Web UI'));
  const rows = [...section.matchAll(/^\| (\w[^|]*\w) +\| `([^`]+)` +\|$/gm)];
  return new Map(rows.map(([, name = '', filter = '']) => [name, filter]));
}

it.concurrent('each saved view of the documentation finds exactly its follow-ups', async () => {
  const lost = { name: 'processed-then-close', operation: 'message' } as const;
  const ask = { maxStaleness: '200ms', reconcileTimeout: '200ms', onUnknownDelivery: 'ask' } as const;
  const { client } = await open();
  const projectId = `views-${crypto.randomUUID().slice(0, 8)}`;
  const active = { projectId, status: 'active', ...ENDLESS_TURN } as const;
  const noChange = { projectId, turn: { outcome: 'no-change' } } as const;
  const followUps = {
    watched: await follow({ projectId, ...ENDLESS_TURN }),
    'Needs an operator': await follow(active, { ...FAST_OPTIONS, ...ask }, lost),
    'Unknown status': await follow({ projectId, ...ENDLESS_TURN }, {}, UNKNOWN_STATUS),
    'Evidence unchanged': await follow(noChange, {}, { name: 'invisible-turn', operation: 'message' }),
    'Delivery unknown': await follow(active, { ...FAST_OPTIONS, ...ask, onUnknownDelivery: 'fail' }, lost),
    ended: await follow({ projectId }),
  };
  expect((await followUps['Evidence unchanged'].result()).receipt.evidence).toBe('unchanged');
  const views = savedViews();
  expect([...views.keys()].sort()).toEqual(
    Object.keys(followUps)
      .filter((name) => !['watched', 'ended'].includes(name))
      .sort(),
  );
  await followUps.ended.result();
  for (const [name, filter] of views) {
    const query = `${filter} AND AgentProject = "${projectId}"`;
    const found = () => collectWorkflowIds(client.workflow.list({ query }));
    const { workflowId } = followUps[name as keyof typeof followUps].handle;
    const until = (ids: string[]) => ids.length > 0;
    expect(await eventually(`the view ${name} has a follow-up`, found, { until })).toEqual([workflowId]);
  }
  for (const name of ['watched', 'Needs an operator', 'Unknown status'] as const)
    await followUps[name].handle.terminate();
});
