/** The part of Express that the example uses: only `npm run test:examples` installs the package itself. */
declare module "express" {
  import type { Server } from "node:http";

  interface Request {
    readonly params: { readonly orderId: string };
    readonly body: { readonly to?: unknown; readonly value?: unknown } | undefined;
  }
  interface Response {
    status(code: number): Response;
    type(name: string): Response;
    json(body: unknown): Response;
  }
  type Handler = (request: Request, response: Response) => Promise<void>;

  export type ErrorRequestHandler = (
    error: unknown,
    request: Request,
    response: Response,
    next: (error: unknown) => void,
  ) => void;
  export interface Express {
    use(handler: unknown): Express;
    put(path: string, handler: Handler): Express;
    get(path: string, handler: Handler): Express;
    listen(port: number): Server;
  }
  const express: (() => Express) & { json(): unknown };
  export default express;
}
