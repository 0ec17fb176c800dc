import type { ScheduleDescription, ScheduleSummary } from '@temporalio/client';
import { inputOf } from '../../client/schedules/action';
import { batchIdOfFiring } from '../../client/schedules/schedule-handle';
import { columns, table } from './text';

/** A list of schedules. */
export function scheduleTable(schedules: readonly ScheduleSummary[]): string {
  const rows = schedules.map((schedule) => [
    schedule.scheduleId,
    schedule.state.paused ? 'paused' : 'active',
    nextTimes(schedule)[0] ?? '-',
    batchIds(schedule.info.recentActions.map(({ action }) => action)).at(-1) ?? '-',
  ]);
  return table(['SCHEDULE', 'STATE', 'NEXT', 'LAST BATCH'], rows);
}

/** Temporal's own description; of the items, which may be many, only how many there are. */
export function documentOf({ scheduleId, spec, policies, state, info, action }: ScheduleDescription) {
  const { items = [], concurrency, tolerate } = inputOf(action);
  const batch = { items: items.length, concurrency, tolerate, taskQueue: action.taskQueue };
  return { scheduleId, spec, policies, state, info, batch };
}

/** A schedule: when it fires next, what it sends, and its last batches. */
export function scheduleText(schedule: ScheduleDescription): string {
  const { spec, state, policies, info } = schedule;
  const { timezone = '' } = spec;
  const { batch } = documentOf(schedule);
  const { numActionsTaken, numActionsSkippedOverlap, numActionsMissedCatchupWindow } = info;
  const running = batchIds(info.runningActions);
  const recent = batchIds(info.recentActions.map(({ action }) => action)).reverse();
  return columns([
    ['schedule', schedule.scheduleId],
    ['state', state.paused ? 'paused' : 'active'],
    ...((state.note ?? '') === '' ? [] : [['note', state.note ?? ''] as const]),
    ['next', nextTimes(schedule).slice(0, 3).join(', ') || 'none'],
    ['timezone', timezone === '' ? 'UTC' : timezone],
    ['overlap', (policies.overlap ?? 'SKIP').toLowerCase().replace('_', '-')],
    ['items', String(batch.items)],
    ['task queue', batch.taskQueue],
    [
      'fired',
      `${numActionsTaken} started, ${numActionsSkippedOverlap} skipped, ${numActionsMissedCatchupWindow} missed`,
    ],
    ...(running.length === 0 ? [] : [['running', running.join(', ')] as const]),
    ...recent.map((batchId, index) => [index === 0 ? 'batches' : '', batchId] as const),
  ]);
}

export function batchIds(
  actions: readonly { readonly workflow: { readonly workflowId: string } }[],
): string[] {
  return actions.map(({ workflow }) => batchIdOfFiring(workflow.workflowId));
}

/** Without milliseconds, because schedules fire by the second. The server names times of a paused schedule too. */
export function nextTimes({ state, info }: Pick<ScheduleSummary, 'state' | 'info'>): string[] {
  return state.paused ? [] : info.nextActionTimes.map((at) => `${at.toISOString().slice(0, 19)}Z`);
}
