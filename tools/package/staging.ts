/** The folders in which the archives are made, and the files that all of them contain. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const ROOT = path.resolve(__dirname, '../..');
/** The path is constant, because the workflow bundle contains it, and the worker's archive contains the bundle. */
export const STAGING = path.join(ROOT, 'artifacts/staging');

/** The compiled `src`. */
export const COMPILED = path.join(STAGING, 'dist');

/** The compiled sandbox, with the modules of `src` that it imports. */
export const COMPILED_SANDBOX = path.join(STAGING, 'sandbox');

/** The documents that all archives contain. */
export const DOCUMENTS = ['LICENSE', 'CHANGELOG.md'];

/** The files for callers in other languages: the rules of a request, and vectors to test their own code with. */
export const PUBLISHED = ['request.schema.json', 'requests.json', 'workflow-id-vectors.json'];

/** Runs a program. @returns its standard output */
export function run(command: string, args: readonly string[], cwd = ROOT): string {
  const options = { cwd, encoding: 'utf8', maxBuffer: 2 ** 26 } as const;
  return execFileSync(command, args, { ...options, stdio: ['ignore', 'pipe', 'inherit'] });
}

export function writeJson(file: string, content: object): void {
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}

/**
 * Adapts a page for use outside the repository. Commands are replaced by commands that work there. Links to missing files and comments
 * for authors are removed.
 */
export function adaptPage(page: string): void {
  const text = readFileSync(page, 'utf8')
    .replaceAll(/<!--.*?-->\n*/gs, '')
    .replaceAll(/npm run (?:-s )?starter -- /g, 'node dist/starter.js ')
    .replaceAll('npm run sandbox -- ', 'npx agent-follow-up-sandbox ')
    .replaceAll(/(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#]+)[^)]*\)/g, (link, words: string, target: string) =>
      existsSync(path.join(path.dirname(page), target))
        ? link
        : words.replace(/^(?:docs\/)?([\w-]+)\.md$/, 'the page _$1_ of the project'),
    );
  writeFileSync(page, text);
}
