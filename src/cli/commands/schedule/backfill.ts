import { Command } from 'commander';
import { type Overlap, OVERLAPS } from '../../../client';
import type { Session } from '../../session';

interface BackfillFlags {
  readonly from: string;
  readonly to: string;
  readonly overlap?: string;
  readonly json?: boolean;
}

export function scheduleBackfillCommand(session: Session): Command {
  return new Command('backfill')
    .summary('let a schedule fire for times that have passed')
    .description(
      'Fires for each of its times in a range, both ends included, as if it passed now. A time for which there is a batch ' +
        'already is left out, as long as the namespace keeps that batch.',
    )
    .argument('<id>', 'of the schedule')
    .requiredOption('--from <time>', 'ISO 8601 with a zone, as 2026-11-21T03:00:00Z')
    .requiredOption('--to <time>', 'likewise')
    .option(
      '--overlap <policy>',
      `if a batch runs: ${OVERLAPS.join(', ')} (default: buffer-all, one after the other)`,
    )
    .option('--json', 'print one JSON document: { scheduleId, times, overlap }')
    .action((id: string, flags: BackfillFlags) => backfill(session, id, flags));
}

async function backfill(session: Session, id: string, flags: BackfillFlags): Promise<void> {
  const { output } = session;
  const { schedules } = await session.connect();
  const { from, to, overlap } = flags;
  // The client checks it.
  const filled = await schedules.backfill(id, from, to, overlap as Overlap | undefined);
  const { times } = filled;
  if (flags.json === true) output.json({ scheduleId: id, ...filled });
  else output.result(times.join('\n'));
  const some = times.length === 1 ? 'fires for this time' : `fires for these ${times.length} times`;
  output.note(`${some}, overlap ${filled.overlap}: ${session.command('schedule', 'describe', id)}`);
}
