/**
 * The documentation of the archives. Every archive has the pages in `docs`, the changelog, SECURITY.md, the examples and the
 * deployment files, at the same paths as in the repository. A page, a type or a message can therefore name any of them.
 */
import { cpSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ROOT } from './staging';

const DOCUMENTATION = ['docs', 'examples', 'deploy', 'LICENSE', 'CHANGELOG.md', 'SECURITY.md'];

/** The files that programs of the examples create, and the picture of the repository's README, which no archive has. */
const UNSHIPPED = /\/(?:node_modules|dist|target|\.venv|__pycache__)(?:\/|$)|\/docs\/web-ui\.png$/;

/** The page that becomes a part of every README. The part begins with the first section. */
const START_PAGE = 'docs/start.md';

/** Matches names that always mean a command or a file of the repository. */
const REPOSITORY_NAMES =
  /\bnpm (?:run [\w:-]+|test|start)\b|(?<![\w./:-])(?:src|test|tools|sandbox)\/[\w./-]+\.ts\b/;
const REPOSITORY_NOTE =
  'The archive does not have the source of the project. The `npm run` commands and the files in `src`, `test`, `tools` and ' +
  '`sandbox` that this page names are in the repository.';

/** Copies the documentation into an archive's folder. @param page the page in `docs` that becomes the README */
export function packPages(folder: string, page: string): void {
  const filter = (file: string) => !UNSHIPPED.test(file);
  for (const each of DOCUMENTATION)
    cpSync(path.join(ROOT, each), path.join(folder, each), { recursive: true, filter });
  const readme = withStartSection(read(path.join('docs', page)), read(START_PAGE));
  writeFileSync(path.join(folder, 'README.md'), moveLinksToRoot(readme));
  const pages = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  for (const file of pages.filter((each) => each.endsWith('.md') && !each.includes('node_modules')))
    adaptPage(folder, file);
  separateExample(path.join(folder, 'examples/typescript'));
}

function read(file: string): string {
  return readFileSync(path.join(ROOT, file), 'utf8');
}

/** Inserts the sections of the start page as the first section of a page. */
function withStartSection(page: string, startPage: string): string {
  const sections = startPage.slice(startPage.indexOf('\n## ')).replaceAll(/^##/gm, '###');
  const end = page.indexOf('\n## ');
  return `${page.slice(0, end)}\n## Start here\n${sections}${page.slice(end)}`;
}

/** Changes the links of a page in `docs` for a copy in the root folder. */
function moveLinksToRoot(text: string): string {
  return text.replaceAll(
    /\]\((?!\w+:|#)([^)#]+)/g,
    (_, target: string) => `](${path.posix.join('docs', target)}`,
  );
}

/**
 * Adapts a page for use outside the repository. A part between the comments `only in the repository` and `end` is removed. Commands are
 * replaced by commands of the packages. A link to a file of the repository becomes text.
 */
function adaptPage(folder: string, file: string): void {
  const page = path.join(folder, file);
  const text = readFileSync(page, 'utf8')
    .replaceAll(/<!-- only in the repository -->.*?<!-- end -->\n*/gs, '')
    .replaceAll(/<!--.*?-->\n*/gs, '')
    .replaceAll(/npm run (?:-s )?starter -- /g, 'agent-follow-up ')
    .replaceAll('npm run sandbox -- ', 'npx --no -- agent-follow-up-sandbox ')
    .replaceAll(/(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)#]+)[^)]*\)/g, (link, words: string, target: string) =>
      existsSync(path.join(path.dirname(page), target)) ? link : words,
    );
  const noted = REPOSITORY_NAMES.test(text) ? text.replace(/\n\n/, `\n\n${REPOSITORY_NOTE}\n\n`) : text;
  writeFileSync(page, noted);
}

/** Removes the client from the example's dependencies, because the path of the client's archive is valid only in the repository. */
function separateExample(folder: string): void {
  const file = path.join(folder, 'package.json');
  const { dependencies, ...manifest } = JSON.parse(readFileSync(file, 'utf8')) as {
    readonly dependencies: Record<string, string>;
  };
  delete dependencies['agent-follow-up-client'];
  writeFileSync(file, `${JSON.stringify({ ...manifest, dependencies }, null, 2)}\n`);
}
