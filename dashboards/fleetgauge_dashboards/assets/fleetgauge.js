/* What the browser does by itself: the clock and the age of the data tick between two answers of
   the server, so that a page whose server is gone does not look fresh. */
(function () {
  "use strict";

  const STALE_AFTER_S = 180;
  const LOST_AFTER_S = 35;
  let answeredAt = performance.now();
  let answer = null;

  function duration(seconds) {
    const s = Math.max(0, Math.floor(seconds));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
    return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
  }

  function age(_second, fresh) {
    if (fresh && fresh.answered !== answer) {
      answer = fresh.answered;
      answeredAt = performance.now();
    }
    const clock = new Date().toISOString().slice(11, 19) + " UTC";
    const waited = (performance.now() - answeredAt) / 1000;
    if (waited > LOST_AFTER_S) {
      return [`✕ server not answering for ${duration(waited)}`, "fg-chip fg-chip--bad", clock];
    }
    if (!fresh) return ["loading", "fg-chip", clock];
    document.title = fresh.title;
    if (fresh.age_s === null) return ["no data yet", "fg-chip", clock];
    const seconds = fresh.age_s + waited;
    if (fresh.ended) return [`data age ${duration(seconds)}`, "fg-chip", clock];
    if (seconds <= STALE_AFTER_S) return [`● data age ${duration(seconds)}`, "fg-chip fg-chip--good", clock];
    return [`▲ data age ${duration(seconds)}`, "fg-chip fg-chip--bad", clock];
  }

  /* What the page shows, whether chosen or the system's; the switch's own property lags at the start. */
  function scheme(_toggled, _second, known) {
    const shown = document.documentElement.getAttribute("data-mantine-color-scheme") || "light";
    return shown === known ? window.dash_clientside.no_update : shown;
  }

  window.dash_clientside = Object.assign({}, window.dash_clientside, { fleetgauge: { age, scheme } });

  const grid = (window.dashAgGridFunctions = window.dashAgGridFunctions || {});
  const fixed = (value, digits) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  grid.ms = (value) => (value == null ? "–" : `${fixed(value, value < 10 ? 2 : value < 100 ? 1 : 0)} ms`);
  grid.min = (value) => (value == null ? "–" : `${fixed(value, Math.abs(value) < 10 ? 2 : 1)} min`.replace("-", "−"));
  /* Cut, not rounded: only what is whole reads 100%. */
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
