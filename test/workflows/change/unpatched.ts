/** The workflows after a change that running follow-ups can't replay: a follow-up waits before its first step. */
import { sleep } from '@temporalio/workflow';
import { followUp as followUpBefore } from '../../../src/workflows';

export * from '../../../src/workflows';

export async function followUp(...input: Parameters<typeof followUpBefore>) {
  await sleep(1);
  return followUpBefore(...input);
}
