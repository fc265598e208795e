import { openApiDocument } from "../../../contract/openapi.ts";
import { docsPage } from "./page.ts";
import { DOCS_STYLE } from "./style.ts";

/** What this node says about its own API, for programs and for people. */
export interface Reference {
  readonly openApi: string;
  readonly page: string;
  readonly style: string;
}

export function writeReference(version: string): Reference {
  const document = openApiDocument(version);
  return { openApi: JSON.stringify(document), page: docsPage(document), style: DOCS_STYLE };
}
