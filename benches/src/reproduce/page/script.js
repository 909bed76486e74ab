if (navigator.clipboard) {
  for (const code of document.querySelectorAll('.steps pre code')) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = 'Copy';
    button.addEventListener('click', () => navigator.clipboard.writeText(code.textContent).then(() => {
      button.textContent = 'Copied';
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    }, () => { button.textContent = 'Failed'; }));
    code.parentElement.after(button);
  }
}
