import { Command } from 'commander';
import { type Overlap, OVERLAPS, type Triggered } from '../../../client';
import type { Session } from '../../session';

interface TriggerFlags {
  readonly overlap?: string;
  readonly json?: boolean;
}

export function scheduleTriggerCommand(session: Session): Command {
  return new Command('trigger')
    .summary('let a schedule fire now')
    .description('Lets a schedule fire now, a paused one too, and prints the id of the batch that it starts.')
    .argument('<id>', 'of the schedule')
    .option('--overlap <policy>', `if a batch runs: ${OVERLAPS.join(', ')} (default: the schedule's own)`)
    .option('--json', 'print one JSON document: { scheduleId, outcome, batchId }')
    .action((id: string, flags: TriggerFlags) => trigger(session, id, flags));
}

async function trigger(session: Session, id: string, flags: TriggerFlags): Promise<void> {
  const { output } = session;
  const { schedules } = await session.connect();
  // The client checks it.
  const triggered = await schedules.trigger(id, flags.overlap as Overlap | undefined);
  const { batchId } = triggered;
  if (flags.json === true) output.json({ scheduleId: id, ...triggered });
  else if (batchId !== null) output.result(batchId);
  output.note(
    batchId === null ? WORDS[triggered.outcome] : `watch it    ${session.command('batch', 'watch', batchId)}`,
  );
}

const WORDS: Readonly<Record<Triggered['outcome'], string>> = {
  started: '',
  skipped: 'skipped: a batch of this schedule runs; --overlap says what else to do',
  waiting:
    'asked for, and nothing was started yet: it may wait for a batch that runs. A schedule fires once a second at most',
};
