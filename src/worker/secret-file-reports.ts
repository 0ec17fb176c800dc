import type { Logger } from '@temporalio/worker';
import { initializeCounters, type Meter, recordMetric } from '../contract/metrics';
import type { SecretFileVariable } from './config';

/**
 * Logs and counts each change after which the worker can't use a secret file. Otherwise, a rotation that failed would be visible
 * only when the agent service rejects the old key. The configuration is loaded before the logger and the metrics exist.
 */
export class SecretFileReports {
  logger: Pick<Logger, 'warn' | 'info'> | undefined;
  private count: (variable: SecretFileVariable) => void = () => undefined;

  countWith(meter: Meter, namespace: string): void {
    initializeCounters(meter, 'worker', { namespace });
    this.count = (variable) => {
      recordMetric(meter, 'secretFileProblems', 1, { variable }, { namespace });
    };
  }

  /** @param problem undefined if the file can be used again */
  readonly report = (variable: SecretFileVariable, problem: string | undefined): void => {
    if (problem === undefined) {
      this.logger?.info(`the file of ${variable} can be used again`);
      return;
    }
    this.logger?.warn(
      `the file of ${variable} can't be used: it ${problem}. The last valid secret stays in use; correct the file`,
    );
    this.count(variable);
  };
}
