import { expect, it } from '@jest/globals';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { ACCEPTED_BY_RESPONSE, ENDLESS_TURN } from '../../harness/follow-up-under-test';
import { withWorker, HOLD_AFTER_PROCESSING } from '../../harness/scenario';
import { temporal } from '../../harness/temporal';

Runtime.install({ logger: new DefaultLogger('ERROR') });

// Proves P3.
it('a cancelled follow-up reports the outcome of its POST even if the Temporal server does not return the heartbeat details; its history replays', () =>
  withWorker(
    { job: ENDLESS_TURN, fault: HOLD_AFTER_PROCESSING, hold: ['DescribeWorkflowExecution', 'call'] },
    async ({ following, held }) => {
      await following.waitForRequest({ fault: 'hold' });
      await following.handle.cancel();
      await held.waitForCall();
      following.releaseHeldRequests();
      expect((await following.cancelledReceipt()).delivery).toEqual(ACCEPTED_BY_RESPONSE);
      const history = await following.handle.fetchHistory();
      const failed = history.events?.filter((event) => event.markerRecordedEventAttributes?.failure);
      expect(failed).toHaveLength(1);
      const bundle = { workflowBundle: { codePath: temporal().bundlePath } };
      await Worker.runReplayHistory(bundle, history, following.handle.workflowId);
    },
  ));
