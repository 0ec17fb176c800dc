import { FollowUpClient } from '../../../src/entries/client';
import type { Environment } from '../../harness/environment';
import { FollowUpUnderTest } from '../../harness/follow-up-under-test';
import { resetToTask, workflowTasks } from '../../harness/reset';
import { endless, LINK, LOST, type Paths, WAIT } from './follow-up-paths';

/** The paths that begin with another kind of start, or with an intervention of a client or an operator. */
export const interventionPaths: Paths = {
  'request-id-from-workflow-id': async (environment) => {
    const key = environment.addJob();
    const request = { ...environment.newRequest(), ...key, ...WAIT, requestId: '' };
    const input = { ...request, requestId: undefined };
    return new FollowUpUnderTest(
      environment,
      request,
      await environment.start('started-in-the-web-ui', input),
    );
  },
  'invalid-request': async (environment) => {
    const request = environment.newRequest();
    const handle = await environment.start(`invalid-${request.requestId}`, { ...request, deadline: '24' });
    return new FollowUpUnderTest(environment, request, handle);
  },
  'start-delayed': (environment) => startWithClient(environment, { startDelay: '1s' }),
  retried: async (environment) => {
    const rejecting = { name: 'status', operation: 'message', times: 1, parameters: { code: 403 } } as const;
    const following = await environment.follow({}, WAIT, rejecting);
    await following.handle.result().catch(() => undefined);
    await environment.followUps.getHandle(following.handle.workflowId).retry();
    return following;
  },
  'cancelled-while-waiting-for-job-lock': async (environment) => {
    const holder = await environment.follow(endless, WAIT);
    await holder.waitForProgress(({ phase }) => phase === 'watching');
    const following = await environment.send({ ...holder.key, ...WAIT });
    await following.waitForProgress(({ phase }) => phase === 'waiting-for-job');
    await following.handle.cancel();
    await following.handle.result().catch(() => undefined);
    holder.changeJob({ status: 'archived' });
    await holder.result();
    return following;
  },
  'deadline-exceeded-while-waiting': (environment) =>
    environment.follow({ status: 'active', ...endless }, { ...WAIT, deadline: '4s' }),
  'resent-without-an-effect': (environment) =>
    environment.follow({}, { onUnknownDelivery: 'resend' }, { ...LOST, times: 2 }),
  'reset-to-the-start': async (environment) => {
    const following = await environment.follow(endless, { ...WAIT, onUnknownDelivery: 'ask' });
    await following.waitForProgress(({ phase }) => phase === 'watching');
    await resetToTask(following.handle, (await workflowTasks(following.handle))[0]);
    await following.waitForProgress(({ phase }) => phase === 'needs-decision');
    await following.update('resolveDelivery', 'delivered', await latestRunId(environment, following));
    following.changeJob({ status: 'failed' });
    await following.update('pollNow');
    return following;
  },
  'reset-in-the-watch': async (environment) => {
    const following = await environment.follow(endless, WAIT);
    await following.waitForProgress(({ polls }) => polls > 1);
    await resetToTask(following.handle, (await workflowTasks(following.handle)).at(-1));
    following.changeJob({ status: 'completed', prLink: LINK });
    return following;
  },
};

async function startWithClient(environment: Environment, options: { readonly startDelay: '1s' }) {
  const followUps = new FollowUpClient(environment.client, { taskQueue: environment.taskQueue });
  const request = { ...environment.newRequest(), ...WAIT };
  const { workflowId } = await followUps.start(request, options);
  const handle = environment.client.workflow.getHandle(workflowId);
  const { runId } = await handle.describe();
  return new FollowUpUnderTest(environment, request, Object.assign(handle, { firstExecutionRunId: runId }));
}

async function latestRunId({ client }: Environment, { handle }: FollowUpUnderTest): Promise<string> {
  return (await client.workflow.getHandle(handle.workflowId).describe()).runId;
}
