import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from '../../harness/worker-process';

/** Returns the blocks of shell commands in a section of a page, with other values instead of the page's examples. */
export function readPageCommands(
  page: string,
  heading: string,
  values: Readonly<Record<string, string>>,
): string[] {
  const sections = readFileSync(path.join(ROOT, page), 'utf8').split(/^## /m);
  const section = sections.find((each) => each.startsWith(`${heading}\n`)) ?? '';
  return [...section.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, commands = '']) =>
    Object.entries(values).reduce((text, [example, value]) => text.replaceAll(example, value), commands),
  );
}
