/* Client-side behaviour. The clock and the data age advance between two responses of the server, so that
   a page without its server does not look fresh. */
(function () {
  "use strict";

  const STALE_AFTER_S = 180;
  const SERVER_LOST_AFTER_S = 35;
  let answeredAt = performance.now();
  let answer = null;

  function duration(seconds) {
    const s = Math.max(0, Math.floor(seconds));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
  }

  function clock(zone) {
    const now = new Date();
    const parts = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" };
    return now.toLocaleTimeString("en-GB", { ...parts, timeZone: zone || "UTC" });
  }

  function age(_second, fresh) {
    if (fresh && fresh.answered !== answer) {
      answer = fresh.answered;
      answeredAt = performance.now();
    }
    const now = clock(fresh && fresh.zone);
    const waited = (performance.now() - answeredAt) / 1000;
    if (waited > SERVER_LOST_AFTER_S) {
      return [`✕ server not answering for ${duration(waited)}`, "fg-chip fg-chip--bad", now];
    }
    if (!fresh) return ["loading", "fg-chip", now];
    document.title = fresh.title;
    if (fresh.slow) return ["▲ the lake answers slowly", "fg-chip fg-chip--bad", now];
    if (fresh.age_s === null) return ["no data yet", "fg-chip", now];
    const seconds = fresh.age_s + waited;
    if (fresh.ended) return [`data age ${duration(seconds)}`, "fg-chip", now];
    if (seconds <= STALE_AFTER_S) return [`● data age ${duration(seconds)}`, "fg-chip fg-chip--good", now];
    return [`▲ data age ${duration(seconds)}`, "fg-chip fg-chip--bad", now];
  }

  /* Return the current colour scheme, chosen or from the system; the switch's property lags at page load. */
  function scheme(_toggled, _second, stored) {
    const shown = document.documentElement.getAttribute("data-mantine-color-scheme") || "light";
    return shown === stored ? window.dash_clientside.no_update : shown;
  }

  const zone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

  window.dash_clientside = Object.assign({}, window.dash_clientside, { fleetgauge: { age, scheme, zone } });

  /* Download a chart as PNG, with the page's heading and the chart's title, on the panel's colour. */
  async function downloadPicture(button) {
    const chart = document.querySelector(`#${CSS.escape(button.dataset.picture)} .js-plotly-plot`);
    const panel = button.closest(".fg-panel");
    if (!chart || !panel || !window.Plotly) return;
    const title = panel.querySelector("h2").textContent;
    const heading = document.querySelector("h1");
    const layout = {
      ...chart.layout,
      paper_bgcolor: getComputedStyle(panel).backgroundColor,
      title: { text: `${heading ? heading.textContent + ": " : ""}${title}`, font: { size: 14 }, x: 0.01, xanchor: "left" },
      margin: { ...chart.layout.margin, t: (chart.layout.margin.t || 0) + 34 },
    };
    const size = { width: chart.clientWidth, height: chart.clientHeight + 34 };
    const url = await window.Plotly.toImage({ data: chart.data, layout }, { format: "png", scale: 2, ...size });
    const link = document.createElement("a");
    link.href = url;
    link.download = `${button.dataset.picture}.png`;
    link.click();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-picture]");
    if (button) downloadPicture(button);
  });

  /* Follow a link within the application without a page load: Dash reacts to popstate events. */
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-inside]");
    const opensElsewhere = event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link || opensElsewhere) return;
    event.preventDefault();
    window.history.pushState({}, "", link.getAttribute("href"));
    window.dispatchEvent(new PopStateEvent("popstate"));
    window.scrollTo(0, 0);
  });

  /* "/" opens the cluster search, Escape leaves the wall view. */
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
      const search = document.getElementById("fleet-search");
      event.preventDefault();
      if (search) search.focus();
      else document.querySelector("#nav a").click();
    }
    if (event.key === "Escape" && document.querySelector(".fg-wall")) {
      const address = new URL(window.location.href);
      address.searchParams.delete("wall");
      window.location.assign(address);
    }
  });

  const grid = (window.dashAgGridFunctions = window.dashAgGridFunctions || {});
  const fixed = (value, digits) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  grid.ms = (value) => (value == null ? "–" : `${fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0)} ms`);
  grid.min = (value) => (value == null ? "–" : `${fixed(value, Math.abs(value) < 10 ? 2 : 1)} min`.replace("-", "−"));
  grid.times = (value) => (value == null ? "–" : `×${fixed(value, value < 10 ? 2 : 0)}`);
  /* Round down, so that only exactly 100 reads 100%. */
  grid.percent = (value, digits) => {
    if (value == null) return "–";
    if (value === 100) return "100%";
    const scale = 10 ** digits;
    return `${fixed(Math.min(Math.floor(value * scale + 1e-7), 100 * scale - 1) / scale, digits)}%`;
  };
  grid.openLink = (event) => {
    if (event.event.key !== "Enter") return;
    const link = event.event.target.querySelector("a");
    if (link) link.click();
  };

  const components = (window.dashAgGridComponentFunctions = window.dashAgGridComponentFunctions || {});
  components.ClusterLink = (props) =>
    React.createElement(window.dash_core_components.Link, { href: props.data.link, children: props.value });
})();
