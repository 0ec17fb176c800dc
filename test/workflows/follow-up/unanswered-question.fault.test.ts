import { expect, it } from '@jest/globals';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { BY_RESPONSE, ENDLESS } from '../../harness/following';
import { onWorker, PROCESSED } from '../../harness/scenario';
import { temporal } from '../../harness/temporal';

Runtime.install({ logger: new DefaultLogger('ERROR') });

// Proves P3.
it('a follow-up that is cancelled while nobody answers what its send has recorded has the answer of its POST, and is replayed', () =>
  onWorker(
    { job: ENDLESS, fault: PROCESSED, hold: ['DescribeWorkflowExecution', 'call'] },
    async ({ following, held }) => {
      await following.reached({ fault: 'hold' });
      await following.handle.cancel();
      await held.arrived();
      following.release();
      expect((await following.receiptOfCancelled()).delivery).toEqual(BY_RESPONSE);
      const history = await following.handle.fetchHistory();
      const failed = history.events?.filter((event) => event.markerRecordedEventAttributes?.failure);
      expect(failed).toHaveLength(1);
      const bundle = { workflowBundle: { codePath: temporal().bundlePath } };
      await Worker.runReplayHistory(bundle, history, following.handle.workflowId);
    },
  ));
