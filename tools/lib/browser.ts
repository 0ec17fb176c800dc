import { chromium } from 'playwright-core';

/** Opens a headless Chromium: the program in `CHROMIUM_PATH`, or Debian's Chromium (`apt-get install chromium`). */
export async function openBrowser(viewport: { width: number; height: number }) {
  const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
  const browser = await chromium.launch({ executablePath });
  return { page: await browser.newPage({ viewport }), close: () => browser.close() };
}

/** Returns the address of a follow-up's page in Temporal's Web UI. */
export function workflowPageUrl(uiUrl: string, workflowId: string, runId: string): string {
  return `${uiUrl}/namespaces/default/workflows/${encodeURIComponent(workflowId)}/${runId}`;
}
