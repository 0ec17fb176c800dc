import { chromium } from 'playwright-core';

/** Opens a headless Chromium: that of `CHROMIUM_PATH`, or Debian's (`apt-get install chromium`). */
export async function openBrowser(viewport: { width: number; height: number }) {
  const executablePath = process.env.CHROMIUM_PATH ?? '/usr/bin/chromium';
  const browser = await chromium.launch({ executablePath });
  return { page: await browser.newPage({ viewport }), close: () => browser.close() };
}

/** The page of a follow-up in Temporal's Web UI. */
export function workflowPageUrl(uiUrl: string, workflowId: string, runId: string): string {
  return `${uiUrl}/namespaces/default/workflows/${encodeURIComponent(workflowId)}/${runId}`;
}
