import type { BatchProgress } from '../../client';
import { columns } from '../table';
import type { Session } from '../session';
import { failureLines, progressTable } from './text';

/** Where a batch stands, as a result. */
export function tellProgress({ output }: Session, progress: BatchProgress, json: boolean): void {
  if (json) {
    output.json(progress);
    return;
  }
  output.result(columns(progressTable(progress)));
  for (const line of failureLines(progress.firstFailures)) output.result(line);
}
