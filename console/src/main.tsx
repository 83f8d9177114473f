import "@mantine/core/styles.css";
import "./shell/base.css";
import "./tone/tone.css";
import { MantineProvider } from "@mantine/core";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { ME_QUERY } from "./api/session.ts";
import { queryClient } from "./shell/query-client.ts";
import { router } from "./shell/router.tsx";
import { theme } from "./shell/theme.ts";

/** Each page has a nonce of its own, without which the browser takes no style that a script made. */
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.nonce ?? "";
// Where the library that keeps the page behind a dialog from scrolling looks for it.
Object.assign(window, { __webpack_nonce__: nonce });

// Every page but one asks first who reads it: that need not wait until there is a page.
if (window.location.pathname !== "/sign-in") void queryClient.prefetchQuery(ME_QUERY);

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
