// The few lines of script that the page is readable without: filters of the claims, all details open in print.
(function () {
  var bar = document.querySelector('.filters');
  if (bar) {
    bar.hidden = false;
    bar.addEventListener('click', function (event) {
      var button = event.target.closest('button');
      if (!button) return;
      bar.querySelectorAll('button').forEach(function (b) { b.setAttribute('aria-pressed', String(b === button)); });
      document.querySelectorAll('#claims ol.claims > li').forEach(function (item) {
        item.hidden = Boolean(button.value) && item.dataset.verdict !== button.value;
        item.style.display = item.hidden ? 'none' : '';
      });
    });
  }
  window.addEventListener('beforeprint', function () {
    document.querySelectorAll('details').forEach(function (d) { d.open = true; });
  });
})();
