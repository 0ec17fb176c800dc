import { truncate } from '../src/core/text';
import type { Commit, PullRequest } from './pull-requests';

/** Characters of a prompt on a page: a screenful or two; the whole text is in the journal. */
const MAX_PROMPT_CHARACTERS = 4_000;

const STYLE =
  'body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:3rem auto;padding:0 1rem}' +
  'pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#f4f4f4;padding:1rem;border-radius:.5rem}' +
  'small{color:#666}';

/** The page of a pull request. Everything on it came over the wire, so everything is escaped. */
export function pullRequestPage({ number, repository, branch, commits }: PullRequest): string {
  const title = `Pull request #${number} · ${repository}`;
  return page(
    title,
    `<h1>${escape(title)}</h1>
<p>Opened by the sandbox's agent from branch <code>${escape(branch)}</code>. No repository stands behind it.</p>
<ol>
${commits.map(commitItem).join('\n')}
</ol>`,
  );
}

export function missingPage(what: string): string {
  return page('Not found', `<h1>Not found</h1>\n<p>${escape(what)}</p>`);
}

function commitItem({ jobId, prompt, at }: Commit): string {
  const asked =
    prompt === null
      ? '<p>The first turn of the job.</p>'
      : `<p>Asked for:</p><pre>${escape(truncate(prompt, MAX_PROMPT_CHARACTERS))}</pre>`;
  return `<li>${asked}<small>job ${escape(jobId)}, ${new Date(at).toISOString()}</small></li>`;
}

function page(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>${escape(title)}</title>
<style>${STYLE}</style>
${body}
</html>
`;
}

function escape(text: string): string {
  const entities: Record<string, string> = {
    '&': '&amp;',
    '<': '&lt;',
    '>': '&gt;',
    '"': '&quot;',
    "'": '&#39;',
  };
  return text.replace(/[&<>"']/g, (character) => entities[character] ?? character);
}
